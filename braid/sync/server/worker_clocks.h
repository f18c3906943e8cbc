// The clocks of a server's workers: the number of pushes of each, and its state.
#pragma once

#include <cstdint>
#include <vector>

namespace braid::sync::server {

class WorkerClocks {
 public:
  enum class State {
    Expected,  // may join; no worker waits for it
    Live,
    Ended,  // left or lost; may join again
  };

  // The first `num_initial` are live from the start, at clock 0.
  WorkerClocks(int num_workers, int num_initial);

  int size() const { return static_cast<int>(workers_.size()); }
  State state(int worker) const { return at(worker).state; }
  int64_t clock(int worker) const { return at(worker).clock; }
  // Returns the lowest clock of live workers; without any, the highest of all. Never decreases.
  int64_t slowest() const;
  bool all_ended() const;
  int num_live() const;

  // Makes the worker live at the slowest clock. move_ahead() may then increase its clock.
  void join(int worker);
  void move_ahead(int worker, int64_t clock);
  void tick(int worker) { ++at(worker).clock; }
  void end(int worker) { at(worker).state = State::Ended; }

 private:
  struct Worker {
    State state = State::Expected;
    int64_t clock = 0;
  };
  Worker& at(int worker) { return workers_[static_cast<size_t>(worker)]; }
  const Worker& at(int worker) const { return workers_[static_cast<size_t>(worker)]; }

  std::vector<Worker> workers_;
};

}  // namespace braid::sync::server
