// Bookkeeping of threads. The counts avoid a scan of all threads in most calls to standstill().
#include "braid/comm/local/deadlock_detector.h"

#include "braid/base/text.h"

namespace braid::comm::local {

void DeadlockDetector::begin(int rank) {
  ranks_[rank].thread = std::this_thread::get_id();
  add_task(rank, nullptr);
}

void DeadlockDetector::leave(int rank) { remove_task(rank, nullptr); }

void DeadlockDetector::end(int rank) { ranks_[rank].ended = true; }

void DeadlockDetector::add_task(int rank, const Queue* queue) {
  if (!thread_of(rank, queue)) ranks_[rank].threads.push_back({queue});
  change_tasks(*thread_of(rank, queue), +1);
}

void DeadlockDetector::remove_task(int rank, const Queue* queue) { change_tasks(*thread_of(rank, queue), -1); }

void DeadlockDetector::sleep(const BlockedThread& sleeper) {
  if (!sleeper.queue && ranks_[sleeper.rank].thread != std::this_thread::get_id()) return;
  RankThread* thread = thread_of(sleeper.rank, sleeper.queue);
  if (!thread) return;
  thread->awaited = sleeper.awaited;
  ++num_sleeping_;
}

void DeadlockDetector::wake(const BlockedThread& sleeper) {
  if (!sleeper.queue && ranks_[sleeper.rank].thread != std::this_thread::get_id()) return;
  RankThread* thread = thread_of(sleeper.rank, sleeper.queue);
  if (!thread) return;
  thread->awaited = nullptr;
  --num_sleeping_;
}

int DeadlockDetector::standstill() const {
  if (num_sleeping_ == 0 || num_sleeping_ < num_busy_) return -1;
  int first = -1;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (ranks_[rank].ended) continue;
    bool busy = false;
    for (const RankThread& thread : ranks_[rank].threads) {
      if (thread.tasks == 0) continue;
      busy = true;
      if (!thread.awaited || !thread.awaited->hopeless()) return -1;
    }
    if (!busy) return -1;  // not begun, or about to end; other ranks may wait for its end
    if (first < 0) first = rank;
  }
  return first;
}

std::string DeadlockDetector::text() const {
  std::vector<std::string> all;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (ranks_[rank].ended) all.push_back(cat("rank ", rank, " has ended"));
    for (const RankThread& thread : ranks_[rank].threads) {
      if (thread.awaited) {
        all.push_back(
            cat(thread.queue ? "the queue of rank " : "rank ", rank, " waits for ", thread.awaited->description()));
      }
    }
  }
  return joined(all, "; ");
}

DeadlockDetector::RankThread* DeadlockDetector::thread_of(int rank, const Queue* queue) {
  for (RankThread& thread : ranks_[rank].threads) {
    if (thread.queue == queue) return &thread;
  }
  return nullptr;
}

void DeadlockDetector::change_tasks(RankThread& thread, int change) {
  num_busy_ -= thread.tasks > 0;
  thread.tasks += change;
  num_busy_ += thread.tasks > 0;
}

}  // namespace braid::comm::local
