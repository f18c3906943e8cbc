// Watches the processes of a world from their parent: collects how each ended, fails the world when one ends without a
// result, passes signals on, and leaves no process behind. It does not know what they do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/shm/shared_world.h"
#include "braid/launch/forked_process.h"
#include "braid/launch/signal_relay.h"

namespace braid {

// Its destructor kills the processes that still run.
class Supervisor {
 public:
  Supervisor(SharedWorld& world, SignalRelay& signals, double grace_seconds)
      : world_(world), signals_(signals), grace_seconds_(grace_seconds) {}
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Forks the next rank. `life` is its life (forked_process.h); it writes to its line how it ended. Throws RunError.
  void start(const std::function<void(int line)>& life);
  // Returns when all have ended. A rank that ends without saying how fails the world.
  void run();
  // What a rank that has ended wrote about its end; cut short where it was killed meanwhile.
  const std::string& message(int rank) const { return ranks_[rank]->heard(); }

 private:
  void leave_to_child();
  void sleep();
  void pass_on(int signal);
  void bury(int rank);
  void kill_late();
  void send(int signal);

  SharedWorld& world_;
  SignalRelay& signals_;
  const double grace_seconds_;
  std::vector<std::unique_ptr<ForkedProcess>> ranks_;
  double failed_at_ = -1;  // seconds of the clock; -1: not seen to have failed
};

}  // namespace braid
