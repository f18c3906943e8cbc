// Proves on thread ranks that a run's layout computes what the same run computes on one rank.
//
// Three runs of the same steps:
//
//   serial     one rank; every value, gradient and parameter is recorded
//   rounded    one rank again, with sums in another order: the differences that rounding explains
//   layout     the run's mesh, schedule, sharding and recomputation; every rank is compared with the recording
//
// All runs share their kernels, so a fault of a kernel that is the same on every layout is not found.
#pragma once

#include <functional>

#include "braid/data/corpus.h"
#include "braid/nn/value_observer.h"
#include "braid/train/trainer.h"
#include "braid/verify/verdict.h"

namespace braid::verify {

// The inputs of one rank of the layout's run.
struct RankInputs {
  RunSpec spec;
  const data::Corpus* corpus;
  Communicator* world;
  nn::ModelMaker maker;                                            // its observer is not used
  std::function<nn::ValueObserver&(nn::ValueObserver&)> observer;  // returns the observer to use in place of one
  std::function<void(train::Trainer&)> begun;                      // called before the first step
};

struct VerifyOptions {
  int steps = 2;
  // Runs a rank of the layout by calling `run` with its inputs, which it may change; null: as they are. Called on the
  // rank's thread.
  std::function<void(const RankInputs& inputs, const std::function<void(const RankInputs&)>& run)> around = nullptr;
};

// REQUIRES: `run` has no problems and no changed_semantics(), and a resolved vocabulary; it has a mesh of at least one
// rank. Throws RunError if a number of the run on one rank is not finite, and RunError, CommError and what the
// run throws, if the runs are equal until then.
Verdict verify_layout(const RunSpec& run, const data::Corpus& corpus, const VerifyOptions& options = {});

}  // namespace braid::verify
