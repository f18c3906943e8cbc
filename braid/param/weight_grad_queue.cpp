// The queue of weight gradients, a list of closures. Each closure is destroyed as soon as it has run, so activations
// are freed one by one.
#include "braid/param/weight_grad_queue.h"

#include <c10/core/GradMode.h>

#include <utility>

namespace braid::param {

void WeightGradQueue::push(const Parameter& param, int use, int micro, Compute compute) {
  if (!param.is_trained()) return;
  if (!waits_ && !defers_) return run_now(param, use, micro, compute);
  (waits_ ? entries_ : deferred_).push_back({&param, use, micro, std::move(compute)});
}

// Disables gradients: outside of backward, the thread may record graphs, and x requires grad.
void WeightGradQueue::run_now(const Parameter& param, int use, int micro, const Compute& compute) {
  const c10::AutoGradMode no_grad(false);
  compute(sink_.open(param, use, micro));
  sink_.close(param, use, micro);
}

void WeightGradQueue::run(Entry& waiting) {
  const Entry entry = std::exchange(waiting, Entry{});
  run_now(*entry.param, entry.use, entry.micro, entry.compute);
}

void WeightGradQueue::run(int micro) {
  for (Entry& waiting : entries_) {
    if (waiting.micro == micro) run(waiting);
  }
  std::erase_if(entries_, [](const Entry& entry) { return entry.param == nullptr; });
}

void WeightGradQueue::run_all() {
  for (Entry& waiting : entries_) run(waiting);
  entries_.clear();
}

void WeightGradQueue::run_deferred() {
  for (Entry& waiting : deferred_) run(waiting);
  drop_deferred();
}

}  // namespace braid::param
