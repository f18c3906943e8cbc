// Workers of an asynchronous parameter server whose processes die while the others go on, and the samples that the
// others read for them.
//
// A worker's work is a list of shares: the samples of one data rank in one step. A worker at place p of n works off
//
//   1. the shares that it takes over from lost workers, every n-th of them;
//   2. for each step s, its own share, and that of a lost worker w if (s + w) mod n is p.
//
// Each share is one push, and servers apply a worker's pushes in order. So the number of pushes that all servers have
// of a lost worker tells which of its shares are done. The others take over the rest when they notice the loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/comm/roster.h"
#include "braid/sync/replication.h"

namespace braid::train {

struct SampleShare {
  int64_t step = 0;  // number of steps before it
  int data_rank = 0;

  bool operator==(const SampleShare&) const = default;
};

// The work that workers have agreed on at `step`.
struct SharedWork {
  int num_data = 0;  // data ranks of the mesh
  int64_t step = 0;
  std::vector<int> workers;        // those there, by data rank, ascending
  std::vector<int64_t> pushes;     // of each, at `step`
  std::vector<SampleShare> taken;  // shares that they take over

  // Returns the place of a worker in `workers`.
  int place_of(int worker) const;
  // Return the shares that the worker at `place` takes over, and the lost workers whose shares of `step` it reads.
  std::vector<SampleShare> taken_by(int place) const;
  std::vector<int> lost_read_by(int place, int64_t step) const;
  // Returns all shares of the worker at `place` in steps before `end`, in order.
  std::vector<SampleShare> shares_of(int place, int64_t end) const;
};

// A worker that was lost.
struct LostWorker {
  int worker = 0;         // data rank
  int64_t step = 0;       // step after which the others noticed
  int64_t num_taken = 0;  // shares of earlier steps that the others take over
};

// The agreement of the workers that are there, on one of them.
class LostWorkers {
 public:
  // All arguments outlive this. `worker` is this rank's place on the data axis of `num_data` ranks.
  LostWorkers(comm::Roster& roster, sync::PushCounts& pushes, int worker, int num_data);

  // From here on workers may be lost. Collective over all workers.
  void begin(int64_t step, Communicator& workers);
  bool begun() const { return !work_.workers.empty(); }
  // Returns the workers that are there, by data rank.
  const std::vector<int>& workers() const { return roster_.members(); }
  // Returns the lost workers whose shares of `step` this worker reads, by data rank.
  std::vector<int> read_here(int64_t step) const;
  // Returns how much of the samples of `step` all workers would read if each read as many of them as this one.
  double steps_at_rate_of(int64_t step) const;
  // Returns the data ranks whose samples this worker reads in an evaluation's step `step`: its own first.
  std::vector<int> evaluated_here(int64_t step) const;
  // Agrees on the work from `step` on, after MembersLost. Returns the shares that this worker takes over. Throws
  // MembersLost. REQUIRES: the workers that are there have done all their work before `step`. Collective over them.
  std::vector<SampleShare> take_over(int64_t step, Communicator& workers);
  // Returns the workers whose loss was noticed since the last call.
  std::vector<LostWorker> take_lost();

 private:
  void agree(int64_t step, std::vector<SampleShare> taken, Communicator& workers);

  comm::Roster& roster_;
  sync::PushCounts& pushes_;
  const int worker_, num_data_;
  SharedWork work_;
  std::vector<LostWorker> lost_;
};

}  // namespace braid::train
