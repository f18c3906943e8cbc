// Ranks over Gloo as threads of the test, each with connections of its own on loopback.
#pragma once

#include "braid/comm/gloo/make_gloo_world.h"
#include "tests/comm/rank_threads.h"

namespace braid::comm::tests {

struct GlooRanks {
  double deadline_seconds = 100;
  ReductionOrder sums = ReductionOrder::Tree;
  MakeQueue make_queue = nullptr;
};

// Throws the exception of the rank that failed first.
inline void run_gloo_ranks(int num_ranks, const std::function<void(Communicator&)>& body,
                           const GlooRanks& options = {}) {
  control::LocalStore store;
  OneFailureState failures;
  const auto make_world = [&](int rank, Queue& queue) {
    return make_gloo_world({.self = {.rank = rank,
                                     .size = num_ranks,
                                     .failures = &failures,
                                     .deadline_seconds = options.deadline_seconds,
                                     .sums = options.sums},
                            .store = &store,
                            .prefix = "test/"},
                           queue);
  };
  run_ranks_on(num_ranks, failures, make_world, body, options.make_queue);
}

}  // namespace braid::comm::tests
