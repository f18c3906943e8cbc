// Parameter servers that are ranks of their own (sync.servers_on = "own"). They are the last ranks of the world. If
// pipeline or tensor parallelism cuts the model into parts, rank s of the servers runs server s of every part, each as
// a thread. Workers send them the sizes of the parts and the first parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/server/server_thread.h"

namespace braid::sync::server {

// No deadline: a run whose rank is held up from outside resumes later, and ranks that fail close their channels.
inline constexpr double kNoDeadline = 1e8;

// A part of the model, which all workers of a group hold.
struct ServedPart {
  int64_t first_worker = -1;  // rank in the world of the part's worker 0
  int64_t num_workers = 0;
  at::ScalarType type = at::kFloat;
  int64_t num_elements = 0;
  std::vector<KeyRange> not_decayed;
};
template <class Pack>
void members(Pack& pack, ServedPart& part) {
  pack(part.first_worker, part.num_workers, part.type, part.num_elements, part.not_decayed);
}

// Returns the description of server `number` of a part, without its initial values.
ServerThread::Part part_of_server(const SyncSpec& sync, const OptimizerSpec& optimizer, const ServedPart& part,
                                  int number);

// Called by the worker `worker` of `part`. Returns its channel to the part's servers, which are endpoints 0, 1, ... The
// worker 0 sends `initial`, the elements of the part, to them. Collective over `world` with serve(). Blocks.
std::unique_ptr<Channel> reach_servers(const SyncSpec& sync, const ServedPart& part, int worker,
                                       const at::Tensor& initial, Communicator& world);

// The calls of a server's rank to the caller of the run. Any thread may make them.
struct ServerRankCalls {
  std::function<void()> on_begin = [] {};                                 // called once the servers answer workers
  std::function<RunRequest()> request = [] { return RunRequest::GoOn; };  // see ServerOptions::request
};

// Called by each of the last sync.servers ranks of `world`. Runs a server of every part until all workers have left.
// Throws the exception of a server, and CommError if the world fails.
void serve(const SyncSpec& sync, const OptimizerSpec& optimizer, const ServerRankCalls& calls, Communicator& world);

}  // namespace braid::sync::server
