// A reducer that does not compress the first steps. Gradients change fastest when training begins, and residuals would
// be large.
#pragma once

#include <memory>

#include "braid/sync/grad_reducer.h"

namespace braid::sync {

class LateReducer final : public GradReducer {
 public:
  // Uses `before` for the steps 0 .. first_step - 1, and `after` from then on.
  LateReducer(std::unique_ptr<GradReducer> before, std::unique_ptr<GradReducer> after, int64_t first_step)
      : before_(std::move(before)), after_(std::move(after)), first_step_(first_step), used_(before_.get()) {}

  void plan(const GradLayout& layout) override {
    before_->plan(layout);
    after_->plan(layout);
  }
  void begin_step(int64_t step) override {
    used_ = step < first_step_ ? before_.get() : after_.get();
    used_->begin_step(step);
  }
  void start(int bucket, const at::Tensor& grads) override { used_->start(bucket, grads); }
  void advance(int bucket) override { used_->advance(bucket); }
  void finish(int bucket) override { used_->finish(bucket); }
  int64_t bytes_sent() const override { return before_->bytes_sent() + after_->bytes_sent(); }
  std::vector<ReducerState> state() override { return after_->state(); }

 private:
  const std::unique_ptr<GradReducer> before_, after_;
  const int64_t first_step_;
  GradReducer* used_;
};

}  // namespace braid::sync
