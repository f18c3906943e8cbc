// Shards are combined: sums of gradients on their owners, whole parameters around a block that runs.
#include "braid/sync/zero.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"

namespace braid::sync::zero_test {
namespace {

layout::ParamSpec spec_of(const std::string& name, int64_t elements, int use = 0, int uses = 1) {
  return {name, mesh::replicated({elements}), {model::Init::Kind::Normal, 1}, model::WeightDecay::Yes, use, uses};
}

// wte is used by the first and the last block.
std::vector<layout::BlockSpec> blocks() {
  return {{"embedding", {spec_of("wte", 1500, 0, 2), spec_of("wpe", 10)}},
          {"middle", {spec_of("a", 3000), spec_of("b", 1), spec_of("c", 1024)}},
          {"head", {spec_of("ln", 7), spec_of("wte", 1500, 1, 2)}}};
}

void fill(at::Tensor slice, float value, bool add) {
  float* p = slice.mutable_data_ptr<float>();
  for (int64_t i = 0; i < slice.numel(); ++i) p[i] = (add ? p[i] : 0) + value;
}

float contribution(int rank, int param, int use, int micro) {
  return static_cast<float>(rank + 1 + 10 * param + 100 * use + 1000 * micro);
}

float total(const param::Parameter& param, int ranks, int micros) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (int micro = 0; micro < micros; ++micro) {
      for (const int use : param.local_uses) sum += contribution(rank, param.index, use, micro);
    }
  }
  return sum;
}

struct Rank {
  Rank(Communicator& the_world, param::Sharded what, Reduction reduction, int parts)
      : world(the_world),
        shards(world.split(world.rank() / parts, world.rank(), "shards")),
        copies(world.split(world.rank() % parts, world.rank(), "copies")),
        alone(world.split(world.rank(), 0, "alone")),
        store(blocks(), param::StoreOptions{reduction, at::kFloat, 7, {what, shards->rank(), parts}}) {
    if (store.shards_gradients()) {
      auto units = std::make_unique<param::UnitSink>(store);
      unit_sink = units.get();
      sink = std::move(units);
    } else {
      sink = reduction == Reduction::Fast ? param::accumulating_sink(store) : param::tree_sink(store);
    }
    zero.emplace(store, unit_sink, ReplicaGroups{world, *shards, *copies, *alone}, ZeroOptions{{{0, 0, 0}}});
    sink->on_ready = [this](const param::Parameter& param) { zero->ready(param); };
  }

  void step(int micros) {
    sink->begin_step(micros);
    for (int micro = 0; micro < micros; ++micro) {
      for (auto param = store.params().rbegin(); param != store.params().rend(); ++param) {
        for (const int use : param->local_uses) {
          const param::GradSlot slot = sink->open(*param, use, micro);
          fill(slot.target, contribution(world.rank(), param->index, use, micro), slot.beta == 1);
          sink->close(*param, use, micro);
        }
      }
    }
    zero->finish();
  }

  // Returns final_from() once all ranks have reported as many parameters. A rank that asks helps with what is sent.
  int64_t final_from() {
    for (int i = 0; i < 2; ++i) {
      zero->final_from();
      world.barrier().wait_host();
    }
    return zero->final_from();
  }

  // Expects sums in the elements of the flat buffers from `from` on.
  void expect_sums(int micros, int64_t from = 0) const {
    for (const param::OwnedRange& range : store.owned()) {
      const float* grad = range.grad.const_data_ptr<float>();
      for (const param::Parameter& param : store.params()) {
        const int64_t end = std::min(range.end, param.offset + param.num_elements());
        for (int64_t i = std::max({range.begin, param.offset, from}); i < end; ++i) {
          ASSERT_EQ(grad[i - range.begin], total(param, world.size(), micros)) << param.name << " at " << i;
        }
      }
    }
  }

  Communicator& world;
  std::unique_ptr<Communicator> shards, copies, alone;
  param::ParamStore store;
  param::UnitSink* unit_sink = nullptr;
  std::unique_ptr<param::GradSink> sink;
  std::optional<Zero> zero;
};

TEST(Zero, OwnersHoldTheSumsOfAllRanksMicrobatchesAndUses) {
  for (const param::Sharded what : {param::Sharded::Optimizer, param::Sharded::Gradients, param::Sharded::Parameters}) {
    for (const Reduction reduction : {Reduction::Fast, Reduction::Reproducible}) {
      for (const int parts : {2, 4}) {
        SCOPED_TRACE(cat(static_cast<int>(what), " ", static_cast<int>(reduction), " ", parts, " parts of 4 ranks"));
        run_ranks(4, [&](Communicator& world) {
          Rank rank(world, what, reduction, parts);
          for (const int micros : {1, 4, 2}) {
            rank.step(micros);
            rank.expect_sums(micros);
          }
        });
      }
    }
  }
}

TEST(Zero, WhatIsFinalBeforeTheEndIsTheSum) {
  for (const param::Sharded what : {param::Sharded::Optimizer, param::Sharded::Gradients, param::Sharded::Parameters}) {
    for (const int ranks : {2, 4}) {
      SCOPED_TRACE(cat(static_cast<int>(what), " ", ranks));
      run_ranks(ranks, [&](Communicator& world) {
        Rank rank(world, what, Reduction::Fast, 2);
        int num_micros = 0;
        int64_t from = 0;
        rank.sink->on_ready = [&, report = rank.sink->on_ready](const param::Parameter& param) {
          report(param);
          from = rank.final_from();
          rank.expect_sums(num_micros, from);
        };
        for (const int micros : {1, 4, 2}) {
          num_micros = micros;
          rank.step(micros);
          if (ranks == 2) {
            EXPECT_LE(from, rank.store["wpe"].offset);
          } else if (ranks == 4) {
            EXPECT_GE(from, rank.store.num_flat()) << "copies are added at the end";
          }
        }
      });
    }
  }
}

TEST(Zero, AfterAnUpdateEveryRankHasWhatTheOwnersWrote) {
  run_ranks(4, [&](Communicator& world) {
    Rank rank(world, param::Sharded::Optimizer, Reduction::Fast, 2);
    for (const param::OwnedRange& range : rank.store.owned())
      fill(range.master, static_cast<float>(range.begin), false);
    rank.zero->updated();
    for (const param::ShardUnit& unit : rank.store.units()) {
      const float* data = rank.store.flat_data().const_data_ptr<float>();
      for (int64_t i = unit.begin; i < unit.end; ++i) {
        const int64_t half = unit.length() / 2;
        ASSERT_EQ(data[i], static_cast<float>(i < unit.begin + half ? unit.begin : unit.begin + half));
      }
    }
  });
}

TEST(Zero, ABlockIsWholeBetweenAcquireAndRelease) {
  param::ParamStore alone(blocks(), Reduction::Fast, at::kFloat, 7);
  run_ranks(2, [&](Communicator& world) {
    Rank rank(world, param::Sharded::Parameters, Reduction::Fast, 2);
    const auto has_memory = [&](int unit) {
      return rank.store.unit_data(unit).storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get() !=
             nullptr;
    };
    const auto expect_whole = [&](const char* name) {
      EXPECT_TRUE(rank.store[name].data.detach().equal(alone[name].data.detach())) << name;
    };
    rank.zero->acquire(0, param::Phase::Forward);
    expect_whole("wte");
    expect_whole("wpe");
    EXPECT_TRUE(has_memory(2)) << "the next block is on its way";
    rank.zero->release(0, param::Phase::Forward);
    EXPECT_FALSE(has_memory(0));
    rank.zero->acquire(1, param::Phase::Forward);
    expect_whole("a");
    EXPECT_TRUE(has_memory(0)) << "the tied parameter comes again for the head";
    rank.zero->release(1, param::Phase::Forward);
    rank.zero->acquire(2, param::Phase::Backward);
    rank.zero->acquire(2, param::Phase::Backward);
    rank.zero->release(2, param::Phase::Backward);
    expect_whole("wte");
    expect_whole("ln");
    rank.zero->release(2, param::Phase::Backward);
    EXPECT_FALSE(has_memory(3));
    rank.step(1);
    for (int unit = 0; unit < 4; ++unit) EXPECT_FALSE(has_memory(unit)) << "what was asked for and never used is freed";
  });
}

TEST(Zero, GradientsOfAUnitThatNeverCameAreMissed) {
  EXPECT_THROW(run_ranks(2,
                         [](Communicator& world) {
                           Rank rank(world, param::Sharded::Gradients, Reduction::Fast, 2);
                           rank.sink->begin_step(1);
                           rank.zero->finish();
                         }),
               InternalError);
}

}  // namespace
}  // namespace braid::sync::zero_test
