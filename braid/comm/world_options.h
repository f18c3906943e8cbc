// The options of a world of process ranks, for every engine of that kind.
#pragma once

#include <string>
#include <vector>

#include "braid/comm/failure_state.h"
#include "braid/comm/rank_activity.h"
#include "braid/control/key_value_store.h"

namespace braid::comm {

// The order of sums of all_reduce.
// * Tree: the order of communicator.h.
// * Measured: the engine's own order, for sizes for which a measurement at the start finds it faster. The sums are
// equal
//   on all ranks, but depend on the number of ranks, on the nodes, on the size and on the measurement.
// * Engine: the engine's own order wherever it has one, for tests and benchmarks.
enum class ReductionOrder { Tree, Measured, Engine };

// A rank's place in its world, over any transport.
struct RankOptions {
  int rank = 0;
  int size = 1;
  FailureState* failures = nullptr;  // outlives the communicator and its works
  double deadline_seconds = 300;     // of every wait, and of the start
  ReductionOrder sums = ReductionOrder::Tree;
  RankActivity* activity = nullptr;  // outlives the communicator; null: activity is not recorded
  // Node of each rank, for collectives in two levels (transport/two_levels.h), the same on all ranks. Empty: all ranks
  // are on one node.
  std::vector<int> node_of_rank = {};
  std::vector<int> host_of_rank = {};  // for Communicator::bytes_across_hosts(); empty: all ranks are on one host
};

// The options of a rank that finds its peers by a key-value store.
struct WorldOptions {
  RankOptions self = {};
  control::KeyValueStore* store = nullptr;  // by which ranks find each other; outlives the communicator
  std::string prefix;                       // of the store's keys; of this world and attempt only
  std::string address = "127.0.0.1";  // of this host, reachable for peers; the rank listens there on any free port
};

}  // namespace braid::comm
