// The supervisor's delegate: it connects the ranks of one host with the other hosts of a job, or does nothing where all
// ranks are on this host.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

#include "braid/launch/hang_detector.h"

namespace braid::launch {

class Supervisor;

class SupervisorDelegate {
 public:
  virtual ~SupervisorDelegate() = default;

  // Adds descriptors that the supervisor is to wait for, beside its own; how long at most, in milliseconds.
  virtual int watch(std::vector<pollfd>& watched) const = 0;
  // Does all work that does not block; called after every wait.
  virtual void advance(Supervisor& supervisor) = 0;
  // Returns true if the bytes that the rank of a place has written so far contain its outcome.
  virtual bool tells_end(Supervisor& supervisor, int place) = 0;
  // About once a second: what is seen of this host's ranks, in the order they were started.
  virtual void look(Supervisor& supervisor, const std::vector<RankSample>& signs) = 0;
  // Returns true while there is something to wait for although no rank of this host runs any more.
  virtual bool goes_on() const = 0;
  // In a forked child: closes its copies of descriptors.
  virtual void leave_to_child() = 0;
};

}  // namespace braid::launch
