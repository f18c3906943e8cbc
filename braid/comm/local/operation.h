// One operation in flight between thread ranks: the parties that have arrived, the claimed pieces of its work, the
// threads that wait.
//
//   issue --(the rank's queue)--> arrive --all parties--> ready --pieces claimed by whoever waits--> finished
//
// There is no progress thread. A rank that waits early does pieces for ranks that still compute. Every piece is a fixed
// function of the inputs, so the result does not depend on which thread does which piece.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/local/world_state.h"

namespace braid::comm::local {

class Operation {
 public:
  Operation(std::shared_ptr<WorldState> world_state, int num_parties);
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Allows access to party `party`'s tensors from now on. Called once per party, on any thread.
  void arrive(int party);
  // Does unclaimed pieces, then blocks until all pieces are done. Throws CommError if the world has failed, even if
  // this operation was done before; then no thread accesses the operation's tensors any more. `on` is the queue whose
  // task makes this call; null on a rank's thread or any other.
  void wait(int party, double issued_seconds, const Queue* on = nullptr);
  // Does unclaimed pieces. Returns true if wait() would return or throw at once.
  bool poll(int party);

  // Returns the name in messages, with the party's number of the call: "all_reduce #17 on tensor".
  virtual std::string label(int party) const = 0;
  virtual int world_rank(int party) const = 0;
  // Returns the last call of a party in the group, as the end of a sentence; empty if it is not known.
  virtual std::string last_call(int party) const = 0;
  // Returns the last calls of a party in the group, oldest first.
  virtual std::vector<std::string> calls(int party) const = 0;
  WorldState& world_state() const { return *world_state_; }

 protected:
  // Sets the work: units [0, units), each with `unit_bytes` of traffic. Called before the first arrival.
  void set_work(int64_t units, int64_t unit_bytes);

 private:
  // Does units [begin, end). Disjoint ranges run on several threads at once.
  virtual void run(int64_t begin, int64_t end) = 0;
  // Called once, when all units are done and before any wait() returns.
  virtual void finish() = 0;

  // A party's own part of the units, which it claims before those of others. If the operation is repeated on the same
  // tensors, each core finds its units still in its cache.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};  // first unclaimed unit; may be larger than `end`
    int64_t end = 0;
  };

  // A party that waits.
  struct Waiting final : WaitReason {
    Waiting(const Operation& of, int who) : operation(of), party(who) {}
    bool hopeless() const override { return !operation.ready() && operation.missing_and_ended() < 0; }
    std::string description() const override;

    const Operation& operation;
    const int party;
  };

  bool ready() const { return arrived_.load() == static_cast<int>(has_arrived_.size()); }
  bool actionable() const;
  bool spin() const;
  int missing_and_ended() const;
  std::string missing() const;
  bool unclaimed() const { return unclaimed_.load() > 0; }
  void help(int party);
  void work_on(Share& share);
  void complete();
  void quiesce() const;
  void report_ended(int missing, int party);
  void report_late(int party);

  const std::shared_ptr<WorldState> world_state_;
  WaitQueue gate_;
  std::vector<std::atomic<bool>> has_arrived_;
  std::atomic<int> arrived_{0};
  int64_t units_ = 0;
  int64_t grain_ = 1;
  std::vector<Share> shares_;          // by party
  std::atomic<int64_t> unclaimed_{0};  // number of unclaimed units
  std::atomic<int64_t> done_{0};       // number of units done
  std::atomic<int> active_{0};         // number of threads inside help()
  std::atomic<bool> finished_{false};
};

}  // namespace braid::comm::local
