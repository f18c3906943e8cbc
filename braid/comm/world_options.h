// The options of a world of process ranks that find each other by a key-value store, for every engine of that kind.
#pragma once

#include <string>
#include <vector>

#include "braid/comm/failure_state.h"
#include "braid/comm/rank_activity.h"
#include "braid/control/key_value_store.h"

namespace braid::comm {

// The order of sums of all_reduce.
// * Tree: the order of communicator.h.
// * Engine: the engine's own order if it is faster. The sums are equal on all ranks, but depend on the number of ranks,
//   on the nodes and on the size.
enum class ReductionOrder { Tree, Engine };

struct WorldOptions {
  int rank = 0;
  int size = 1;
  control::KeyValueStore* store = nullptr;  // by which ranks find each other; outlives the communicator
  FailureState* failures = nullptr;         // outlives the communicator and its works
  std::string prefix;                       // of the store's keys; of this world and attempt only
  std::string address = "127.0.0.1";  // of this host, reachable for peers; the rank listens there on any free port
  double deadline_seconds = 300;      // of every wait, and of the start
  ReductionOrder sums = ReductionOrder::Tree;
  RankActivity* activity = nullptr;  // outlives the communicator; null: activity is not recorded
  // Node of each rank, for collectives in two levels (transport/two_levels.h), the same on all ranks. Empty: all ranks
  // are on one node.
  std::vector<int> node_of_rank = {};
};

}  // namespace braid::comm
