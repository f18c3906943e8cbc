// Runs of layouts with a fault on some ranks: in their communicators, their inputs or their values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/model/families.h"
#include "braid/verify/verify_layout.h"
#include "tests/verify/changed_communicator.h"
#include "tests/verify/small_run.h"

namespace braid::verify {

using Call = CallChanges::Call;
using Around = std::function<void(const RankInputs&, const std::function<void(const RankInputs&)>&)>;

// Expects that the run without a fault is equal. Each run is verified once.
inline void expect_sound(const RunSpec& run) {
  static std::vector<RunSpec> sound;
  if (std::ranges::count(sound, run) > 0) return;
  sound.push_back(run);
  const Verdict verdict = verify_layout(run, synthetic_corpus(run, 2));
  EXPECT_FALSE(verdict.first_divergence) << text_of(verdict);
}

// Returns the first divergence as one line, "step 1 forward | op | tensor | 0 1". Without the fault there is none.
inline std::string found(const RunSpec& run, const Around& around) {
  expect_sound(run);
  VerifyOptions options;
  options.around = around;
  const Verdict verdict = verify_layout(run, synthetic_corpus(run, 2), options);
  if (!verdict.first_divergence) return "equal";
  const Divergence& first = *verdict.first_divergence;
  std::string text = cat("step ", first.step, " ", word(first.phase), " | ", first.op, " | ", first.tensor, " |");
  for (const int rank : first.ranks) text += cat(" ", rank);
  return text;
}

// Runs ranks whose calls are changed as `set` says.
inline Around calls(const std::function<void(CallChanges& changes, int rank)>& set) {
  return [set](RankInputs rank, const auto& run) {
    CallChanges changes;
    set(changes, rank.world->rank());
    ChangedCommunicator world(*rank.world, changes);
    rank.world = &world;
    run(rank);
  };
}

// Runs ranks whose inputs are changed.
inline Around inputs(const std::function<void(RankInputs& rank)>& change) {
  return [change](RankInputs rank, const auto& run) {
    change(rank);
    run(rank);
  };
}

// Changes values before the comparison sees them.
struct ChangedValues final : nn::ValueObserver {
  using Change = std::function<void(const nn::MadeValue& place, const nn::Microbatch& microbatch, at::Tensor& value)>;
  ChangedValues(nn::ValueObserver& next, Change change) : next(next), change(std::move(change)) {}
  void made(const nn::MadeValue& place, const nn::Microbatch& microbatch, at::Tensor& value) override {
    change(place, microbatch, value);
    next.made(place, microbatch, value);
  }
  nn::ValueObserver& next;
  Change change;
};

// Changes the values of one rank; kAllRanks: of all.
inline constexpr int kAllRanks = -1;
inline Around values(int rank, const ChangedValues::Change& change) {
  return [=](RankInputs each, const auto& run) {
    std::unique_ptr<ChangedValues> changed;
    if (rank == kAllRanks || each.world->rank() == rank) {
      each.observer = [&](nn::ValueObserver& next) -> nn::ValueObserver& {
        changed = std::make_unique<ChangedValues>(next, change);
        return *changed;
      };
    }
    run(each);
  };
}

inline RunSpec on(const MeshSpec& mesh) {
  RunSpec run = small_run();
  run.mesh = mesh;
  return run;
}

// The output of the first op of this kind in a block.
struct Output {
  Output(const RunSpec& run, int block, model::OpKind kind) : block(block) {
    const model::ModelGraph graph = model::graph_of(run.model);
    value = std::ranges::find(graph.block(static_cast<size_t>(block)).ops, kind, &model::Op::kind)->out;
  }
  bool is(const nn::MadeValue& place) const {
    return place.kind == nn::ValueKind::Output && place.block == block && place.value == value;
  }
  int block, value = 0;
};

// Flips a bit in the upper half of the fraction.
inline void flip_a_bit(const at::Tensor& numbers) { static_cast<unsigned char*>(numbers.mutable_data_ptr())[5] ^= 1; }

// Makes call `number` of all-reduce in groups of this name `times` times on all ranks.
inline Around all_reduced(const std::string& group, int number, int times) {
  return calls([=](CallChanges& changes, int) {
    changes.all_reduce = [=](const Call& call, const at::Tensor& tensor, ReduceOp op) {
      if (!call.is(group, number)) return call.inner.all_reduce(tensor, op);
      for (int time = 0; time < times; ++time) call.inner.all_reduce(tensor, op).wait_host();
      return Work();
    };
  });
}

// Changes the messages that a rank sends.
inline Around sent_by(int sender, const std::function<at::Tensor(const at::Tensor&)>& change) {
  return calls([=](CallChanges& changes, int rank) {
    changes.batch = [=](const Call& call, std::vector<P2p> transfers) {
      for (P2p& transfer : transfers) {
        if (rank == sender && transfer.kind == P2p::Kind::Send) transfer.tensor = change(transfer.tensor);
      }
      return call.inner.batch(transfers);
    };
  });
}

}  // namespace braid::verify
