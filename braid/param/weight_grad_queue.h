// A queue of weight gradients that backward has deferred: x, dY and the destination of their product. A schedule runs
// them right after the input gradient, or later in otherwise idle time (zero bubble).
#pragma once

#include <functional>
#include <vector>

#include "braid/layout/tensor_sums.h"
#include "braid/param/grad_sink.h"

namespace braid::param {

// The time of a weight gradient whose product's input gradient is reduced over tensor ranks, in a full backward.
enum class ReductionOverlap {
  Off,  // before the reduction
  On,   // while the reduction travels
};

class WeightGradQueue {
 public:
  // Writes target = beta * target + gradient.
  using Compute = std::function<void(const GradSlot& slot)>;

  // REQUIRES: `sink` outlives the queue.
  explicit WeightGradQueue(GradSink& sink, layout::TensorParts parts = {}) : sink_(sink), parts_(parts) {}

  // Returns the parts of the layers that use this queue.
  const layout::TensorParts& parts() const { return parts_; }

  // Adds an entry; does nothing for a frozen parameter, which has no slot. The queue owns `compute`, which keeps its
  // inputs (x, dY) alive, until it has run.
  void push(const Parameter& param, int use, int micro, Compute compute);
  // Opens the slot, runs `compute` and closes the slot before returning. Used for a gradient that is known in forward.
  // REQUIRES: `param` is trained.
  void run_now(const Parameter& param, int use, int micro, const Compute& compute);
  // Runs the entries of `micro`, in order of pushing. run_all() runs all entries.
  void run(int micro);
  void run_all();
  // A scope in which push() runs each `compute` at once, so that the queue holds nothing. Used for a backward whose
  // weight gradients follow immediately anyway. At most one such scope is alive at a time.
  class AtOnce {
   public:
    explicit AtOnce(WeightGradQueue& queue) : queue_(queue) { queue_.waits_ = false; }
    ~AtOnce() {
      queue_.waits_ = true;
      queue_.drop_deferred();
    }
    AtOnce(const AtOnce&) = delete;

   private:
    WeightGradQueue& queue_;
  };

  // The choice does not change results.
  void set_overlap(ReductionOverlap overlap) { overlap_ = overlap; }
  ReductionOverlap overlap() const { return overlap_; }
  // Called by a layer whose input's gradient is about to be reduced. In a scope AtOnce with overlap on, entries pushed
  // from now on wait for run_deferred(). Otherwise does nothing.
  void defer() { defers_ = !waits_ && overlap_ == ReductionOverlap::On; }
  // Runs the entries that wait since defer(), in order of pushing. Called once the reduction has started.
  void run_deferred();
  // Returns true between defer() and run_deferred(), if defer() did something.
  bool defers() const { return defers_; }

  // Drops all entries without opening their slots. Used after a backward that failed.
  void drop() { entries_.clear(), drop_deferred(); }
  int64_t pending() const { return static_cast<int64_t>(entries_.size()); }

 private:
  struct Entry {
    const Parameter* param = nullptr;
    int use = 0, micro = 0;
    Compute compute;
  };

  void run(Entry& waiting);
  void drop_deferred() { deferred_.clear(), defers_ = false; }

  GradSink& sink_;
  layout::TensorParts parts_;
  std::vector<Entry> entries_, deferred_;
  bool waits_ = true, defers_ = false;
  ReductionOverlap overlap_ = ReductionOverlap::Off;
};

}  // namespace braid::param
