// What moves a process rank's operations on: its lines of collectives and its messages, under one lock.
//
// There is no thread for it. Everything a rank has in flight, in all its groups, is moved as far as it will go whenever
// the rank makes a call, waits or asks whether a Work is done, on whichever thread. While it computes, its part stands
// still: peers can read what lies in shared memory (its slots of two rounds of a collective, its rings of messages) and
// wait for the rest.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "braid/comm/shm/collective_queue.h"
#include "braid/comm/shm/message_streams.h"

namespace braid::comm::shm {

// Thread-safe.
class ProgressEngine {
 public:
  // `world` outlives this.
  ProgressEngine(SharedWorld& world, int rank);

  SharedWorld& world() const { return world_; }
  int rank() const { return rank_; }

  // Adds a line of collectives, which is moved on until it has been closed and is idle.
  std::shared_ptr<CollectiveQueue> open(std::shared_ptr<const Group> group, int rank);
  void close(const std::shared_ptr<CollectiveQueue>& line);

  // The rank has arrived at these operations.
  void arrive(const std::shared_ptr<CollectiveQueue>& line, std::shared_ptr<Collective> collective);
  void arrive(std::vector<std::shared_ptr<PointToPoint>> messages);

  // Blocks until `operation` is done. Throws CommError when the world has failed, also when the operation had been done
  // before; by then nothing touches its tensors.
  void wait(const Operation& operation, double issued_seconds);
  // True when wait() would return or throw at once.
  bool poll(const Operation& operation);

  // The rank makes no more calls. Moves on what peers still need from it; returns when all of that is done or can never
  // be done, or when the world has failed.
  void finish();

 private:
  struct OpenLine {
    std::shared_ptr<CollectiveQueue> line;
    bool closed = false;
  };

  void advance();
  void move_on();  // under the lock
  bool idle();
  int lost(const Operation& operation);
  void report_late(const Operation& operation);

  SharedWorld& world_;
  const int rank_;
  std::mutex mutex_;
  std::vector<OpenLine> lines_;
  MessageStreams lanes_;
};

}  // namespace braid::comm::shm
