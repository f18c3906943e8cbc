// The entries of the weight-gradient queue: closures over x and dY, each of which writes one slot.
#include "braid/nn/weight_grads.h"

#include "braid/nn/kernels/product.h"
#include "braid/nn/kernels/row_sum.h"
#include "braid/nn/kernels/scatter.h"

namespace braid::nn {
namespace {

void push(const GradTarget& target, param::WeightGradQueue::Compute compute) {
  target.queue->push(*target.param.param, target.param.use, target.micro, std::move(compute));
}

// Clears the slot if beta is 0: the slot may then hold anything, NaN included. beta is 0 or 1.
void forget(const param::GradSlot& slot) {
  if (slot.beta == 0) slot.target.zero_();
}

}  // namespace

std::optional<at::Tensor> any_trained(std::initializer_list<const param::Parameter*> params) {
  for (const param::Parameter* const param : params) {
    if (param && param->is_trained()) return param->data;
  }
  return std::nullopt;
}

void push_product(const GradTarget& target, at::Tensor dy_no, at::Tensor x_ni) {
  push(target, [dy = std::move(dy_no), x = std::move(x_ni)](const param::GradSlot& slot) {
    kernels::accumulate_product(slot.target, dy, x, slot.beta);
  });
}

void push_row_sum(const GradTarget& target, at::Tensor dy_nc) {
  push(target, [dy = std::move(dy_nc)](const param::GradSlot& slot) {
    at::Tensor flat = slot.target.view({-1});
    const int64_t reached = dy.size(1);
    kernels::accumulate_row_sum(flat.narrow(0, 0, reached), dy, slot.beta);
    if (slot.beta == 0) flat.narrow(0, reached, flat.numel() - reached).zero_();
  });
}

void push_scattered_rows(const GradTarget& target, at::Tensor dy_nc, at::Tensor rows_n) {
  push(target, [dy = std::move(dy_nc), rows = std::move(rows_n)](const param::GradSlot& slot) {
    forget(slot);
    kernels::add_rows_(slot.target, dy, rows);
  });
}

void push_value(const GradTarget& target, at::Tensor gradient) {
  push(target, [gradient = std::move(gradient)](const param::GradSlot& slot) {
    forget(slot);
    slot.target.add_(gradient);
  });
}

}  // namespace braid::nn
