// Weight gradients that backward left for later: (x, dY) and where the product goes. A schedule runs them right after
// the input gradient, or later, in what would be bubble (zero bubble).
#pragma once

#include <functional>
#include <vector>

#include "braid/param/grad_sink.h"

namespace braid::param {

class WeightGradQueue {
 public:
  // Writes target = beta * target + gradient.
  using Compute = std::function<void(const GradSlot& slot)>;

  // `sink` must outlive the queue.
  explicit WeightGradQueue(GradSink& sink) : sink_(sink) {}

  // The queue owns `compute`, which keeps what it needs (x, dY) alive, until it has run.
  void push(const Parameter& param, int use, int micro, Compute compute);
  // Opens the slot, runs `compute` and closes it before returning: for a gradient that is known in forward.
  void run_now(const Parameter& param, int use, int micro, const Compute& compute);
  // Runs what was pushed for `micro`, in order of pushing. run_all() runs everything.
  void run(int micro);
  void run_all();
  // While alive, push() runs what it is given at once, so nothing is held on the queue: for a backward whose weight
  // gradients follow immediately anyway. At most one at a time.
  class AtOnce {
   public:
    explicit AtOnce(WeightGradQueue& queue) : queue_(queue) { queue_.waits_ = false; }
    ~AtOnce() { queue_.waits_ = true; }
    AtOnce(const AtOnce&) = delete;

   private:
    WeightGradQueue& queue_;
  };
  // Forgets all entries without opening their slots: after a backward that failed.
  void drop() { entries_.clear(); }
  int64_t pending() const { return static_cast<int64_t>(entries_.size()); }

 private:
  struct Entry {
    const Parameter* param = nullptr;
    int use = 0, micro = 0;
    Compute compute;
  };

  GradSink& sink_;
  std::vector<Entry> entries_;
  bool waits_ = true;
};

}  // namespace braid::param
