// Ranks on several hosts: a communicator over Gloo, the engine that the LibTorch wheel carries, on TCP. It moves and
// sums tensors of CPUs; it does not start ranks, nor watch them.
//
// What promises of communicator.h mean here:
//
//   * Operations move on threads of the engine, while the rank computes.
//   * A send of up to 64 KiB is done at once, a longer one when the receiver has taken it.
//   * That all ranks wait and none can go on is noticed at the deadline.
//
// All that goes over these connections is clear text and believed: they belong on a trusted network (docs/gloo.md).
#pragma once

#include <memory>
#include <string>

#include "braid/comm/communicator.h"
#include "braid/comm/failure_state.h"
#include "braid/comm/rank_activity.h"
#include "braid/control/key_value_store.h"

namespace braid {

// Whose order of adding all_reduce has. That of communicator.h, or Gloo's own: for sums of float32, float64 and int64
// of which a rank would get more than 64 KiB from all others together (of two ranks: more than 1 MiB), fast and equal
// on all ranks, but not the same for every number of ranks and every size.
enum class ReductionOrder { Tree, Engine };

struct GlooOptions {
  int rank = 0;
  int size = 1;
  control::KeyValueStore* store = nullptr;  // by which ranks find each other; outlives the communicator
  comm::FailureState* failures = nullptr;   // outlives the communicator and its works
  std::string prefix;                       // of keys: of this world and attempt alone
  std::string address = "127.0.0.1";  // of this host, that peers reach and where this rank listens, on any free port
  double deadline_seconds = 300;      // of every wait, and of coming together
  ReductionOrder sums = ReductionOrder::Tree;
  comm::RankActivity* activity = nullptr;  // outlives the communicator; null: nobody looks
};

// Collective: blocks until all ranks are connected to all. Throws CommError: a rank did not come, or Gloo does not do
// what it is relied on for.
//
// Destroying the communicator ends the rank's part in the world: it waits until all that the rank has issued is done or
// can never be done and all ranks have come to their end or the world has failed; its groups are gone before. Peers
// that wait for something that it never issues learn that the rank has ended.
std::unique_ptr<Communicator> make_gloo_world(const GlooOptions& options, Queue& queue);

}  // namespace braid
