// Makes the communicator of ranks on several hosts, over Gloo on TCP. It exchanges tensors of the CPU. It neither
// starts ranks nor watches them.
//
// Operations move on threads of the transport while the rank computes. Ranks that all wait, so that none can continue,
// are noticed at the deadline. Everything on the connections is clear text, and peers are trusted: use them on a
// trusted network only (docs/gloo.md).
#pragma once

#include <memory>
#include <string>

#include "braid/comm/communicator.h"
#include "braid/comm/failure_state.h"
#include "braid/comm/rank_activity.h"
#include "braid/control/key_value_store.h"

namespace braid {

// The order of sums of all_reduce.
// * Tree: the order of communicator.h.
// * Engine: Gloo's own order, for sums of float32, float64 and int64 of which a rank would receive more than 64 KiB
// from
//   all others together (of two ranks: more than 1 MiB). It is fast, and the sums are equal on all ranks, but they
//   depend on the number of ranks and on the size.
enum class ReductionOrder { Tree, Engine };

struct GlooOptions {
  int rank = 0;
  int size = 1;
  control::KeyValueStore* store = nullptr;  // by which ranks find each other; outlives the communicator
  comm::FailureState* failures = nullptr;   // outlives the communicator and its works
  std::string prefix;                       // of the store's keys; of this world and attempt only
  std::string address = "127.0.0.1";  // of this host, reachable for peers; the rank listens there on any free port
  double deadline_seconds = 300;      // of every wait, and of the start
  ReductionOrder sums = ReductionOrder::Tree;
  comm::RankActivity* activity = nullptr;  // outlives the communicator; null: activity is not recorded
};

// Collective: blocks until all ranks are connected to all. Throws CommError if a rank does not come, or if Gloo fails
// its test.
//
// Destroying the communicator ends the rank's part in the world. It waits until everything that the rank has issued is
// done or can never be done, and all ranks have come to their end or the world has failed. Its groups are destroyed
// before. Peers that wait for something that the rank never issued get an error that says that it has ended.
std::unique_ptr<Communicator> make_gloo_world(const GlooOptions& options, Queue& queue);

}  // namespace braid
