// Units of parameters on disk: what stays in memory between the uses of a step, and that no use finds old values.
#include "braid/sync/unit_residency.h"

#include <gtest/gtest.h>

#include <numeric>

#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/param/memory_account.h"
#include "braid/spec/run_spec.h"
#include "braid/sync/unit_gatherer.h"
#include "tests/support/scratch_folder.h"

namespace braid::sync::unit_residency_test {
namespace {

constexpr int kBlocks = 6, kElements = 4096, kParts = 2;
constexpr int64_t kUnit = kElements * 4 + 4096;  // bytes of a unit in memory: it begins at a block of the disk

class UnitResidency : public ScratchFolder {};

std::vector<layout::BlockSpec> blocks() {
  std::vector<layout::BlockSpec> all;
  for (int i = 0; i < kBlocks; ++i) {
    const model::Init init{model::Init::Kind::Normal, 1};
    all.push_back({cat("block ", i), {{cat("w", i), mesh::replicated({kElements}), init, model::WeightDecay::Yes}}});
  }
  return all;
}

param::StoreOptions on_disk(int part) {
  param::StoreOptions options{Reduction::Fast, at::kFloat, 7, {param::Sharded::Parameters, part, kParts}};
  options.disk.emplace();
  options.disk->place.folders = {"."};
  options.disk->chunk_bytes = 4096;
  options.disk->parameters = param::Kept::OnDisk;
  return options;
}

// A rank that reads its half of each unit and gathers the other one. `space` is the memory for units.
class Rank {
 public:
  Rank(Communicator& world, int64_t space)
      : store_(blocks(), on_disk(world.rank())), gatherer_(store_, world, memory_with(world.rank(), space)) {
    std::iota(way_.begin(), way_.begin() + kBlocks, 0);
    std::copy(way_.begin(), way_.begin() + kBlocks, way_.rbegin());
  }

  // Forward and backward, in which every block has the values of this step. Returns what the step has read.
  int64_t step(const std::vector<int>& order) {
    if (const auto said = gatherer_.begin_step()) said_.push_back(*said);
    const int64_t before = read();
    run(order);
    gatherer_.end_step();
    EXPECT_EQ(held(), 0) << "the update changes parameters on disk";
    return read() - before;
  }
  int64_t step() { return step(way_); }

  void run(const std::vector<int>& order) {
    for (size_t i = 0; i < order.size(); ++i) {
      gatherer_.acquire(order[i]);
      if (i + 1 < order.size()) gatherer_.prefetch(order[i + 1]);
      const at::Tensor& data = store_[cat("w", order[i])].data;
      EXPECT_EQ(data.detach().sub(first_.at(order[i])).sub(updates_).abs().max().item<float>(), 0) << order[i];
      most_held_ = std::max(most_held_, held());
      gatherer_.release(order[i]);
    }
  }

  void remember() {
    for (int block = 0; block < kBlocks; ++block) {
      gatherer_.acquire(block);
      first_.push_back(store_[cat("w", block)].data.detach().round());
      gatherer_.release(block);
    }
    for (int block = 0; block < kBlocks; ++block) {
      store_.disk()->change(store_.own_part(block), [](const at::Tensor& values) { values.round_(); });
    }
  }

  void update() {
    ++updates_;
    for (int block = 0; block < kBlocks; ++block) {
      store_.disk()->change(store_.own_part(block), [](const at::Tensor& values) { values.add_(1); });
    }
  }

  int64_t take_most_held() { return std::exchange(most_held_, 0); }
  int64_t bytes_sent() const { return gatherer_.bytes_sent(); }
  const std::vector<std::string>& said() const { return said_; }

 private:
  static ParameterMemory memory_with(int rank, int64_t space) {
    param::account_memory_to(rank);
    param::reset_memory_peak(rank);
    constexpr int64_t kLimit = 100 << 20;
    return space == 0 ? ParameterMemory{} : ParameterMemory{kLimit, bytes_for_parameters(kLimit, space)};
  }
  static int64_t held() {
    return param::memory_use(*param::accounted_rank()).bytes[static_cast<size_t>(param::MemoryCategory::Parameters)];
  }
  int64_t read() { return store_.disk()->disk().bytes_read(); }

  param::ParamStore store_;
  UnitGatherer gatherer_;
  std::vector<int> way_ = std::vector<int>(2 * kBlocks);
  std::vector<at::Tensor> first_;
  int updates_ = 0;
  int64_t most_held_ = 0;
  std::vector<std::string> said_;
};

void on_both_ranks(int64_t space, const std::function<void(Rank&)>& body) {
  param::install_memory_accounting();  // before other threads allocate
  run_ranks(kParts, [&](Communicator& world) {
    Rank rank(world, space);
    rank.remember();
    body(rank);
  });
}

// With space for n of 6 units, backward finds the last n units of forward.
TEST_F(UnitResidency, UnitsStayAsFarAsThereIsSpace) {
  for (const int units : {0, 1, 3, 4, 6, 9}) {
    SCOPED_TRACE(units);
    on_both_ranks(units * kUnit, [&](Rank& rank) {
      const int64_t each = kElements * 4 / kParts, each_use = 2 * kBlocks * each;
      EXPECT_EQ(rank.step(), each_use) << "the traced step";
      const int stay = units < 2 ? 0 : std::min(units, kBlocks);
      for (int step = 0; step < 3; ++step) {
        rank.update();
        rank.take_most_held();
        const int64_t sent = rank.bytes_sent();
        EXPECT_EQ(rank.step(), each_use - stay * each);
        EXPECT_EQ(rank.bytes_sent() - sent, each_use - stay * each) << "what stays is not gathered again";
        EXPECT_LE(rank.take_most_held(), std::max(units, 2) * kUnit);
      }
      ASSERT_EQ(rank.said().size(), units == 0 ? 0u : 1u);
      if (units <= 1) return;
      EXPECT_NE(rank.said()[0].find("of them from disk, not 96.0 KiB"), std::string::npos);
    });
  }
}

// As an evaluation does: it reads each unit for each use, and changes nothing for the steps.
TEST_F(UnitResidency, UsesBetweenStepsAreNotTraced) {
  on_both_ranks(4 * kUnit, [](Rank& rank) {
    int64_t last = 0;
    for (int step = 0; step < 4; ++step) {
      rank.take_most_held();
      rank.run({0, 1, 2, 3, 4, 5});
      EXPECT_LE(rank.take_most_held(), 2 * kUnit);
      const int64_t now = rank.step();
      EXPECT_TRUE(step < 2 || now == last);
      last = now;
      rank.run({3, 1});
      rank.update();
    }
  });
}

TEST_F(UnitResidency, AnotherStepKeepsToTheSpace) {
  const int64_t space = 3 * kUnit;
  on_both_ranks(space, [&](Rank& rank) {
    const std::vector<std::vector<int>> steps = {{0, 1, 2, 2, 1, 0}, {5, 4, 3}, {0, 5, 0, 5, 1, 0, 4, 5}};
    rank.step();
    for (const std::vector<int>& order : steps) {
      for (int again = 0; again < 3; ++again) {
        rank.update();
        rank.take_most_held();
        rank.step(order);
        EXPECT_LE(rank.take_most_held(), space);
      }
    }
  });
}

}  // namespace
}  // namespace braid::sync::unit_residency_test
