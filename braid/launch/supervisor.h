// Watches the processes of a world from their parent: brings home how each ended, tells the living of the dead, passes
// signals on, and leaves none behind. It does not know what they do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/shm/shared_world.h"
#include "braid/launch/forked_process.h"
#include "braid/launch/signal_relay.h"

namespace braid {

// Kills whoever is left when it is destroyed.
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
  // Of a rank that has ended: what it wrote, whole or not.
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
