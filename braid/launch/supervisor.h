// Watches the processes of a world from their parent: brings home how each ended, tells the living of the dead, and
// leaves none behind. It does not know what they do.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "braid/comm/shm/shared_world.h"
#include "braid/launch/signal_relay.h"

namespace braid {

class Supervisor {
 public:
  Supervisor(SharedWorld& world, SignalRelay& signals, double grace_seconds)
      : world_(world), signals_(signals), grace_seconds_(grace_seconds) {}
  // Kills and buries whoever is left.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // The next rank: its process, and the end of a pipe into which it writes how it ended. Takes both over.
  void add(pid_t process, int pipe);
  // Returns when all have ended. A rank that ends without saying how fails the world.
  void run();
  // Of a rank that has ended: what it wrote, whole or not.
  const std::string& message(int rank) const { return children_[rank].message; }
  // In a forked child: the pipes are not its own.
  void leave_to_child();

 private:
  struct Child {
    pid_t process;
    int pipe;
    bool alive = true;
    std::string message = {};
  };

  void sleep();
  void bury(int rank);
  void read_from(Child& child);
  void kill_late();
  void send(int signal);

  SharedWorld& world_;
  SignalRelay& signals_;
  const double grace_seconds_;
  std::vector<Child> children_;
  double failed_at_ = -1;  // seconds of the clock; -1: not seen to have failed
};

}  // namespace braid
