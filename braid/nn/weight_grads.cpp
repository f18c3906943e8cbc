// The entries of the weight-gradient queue: closures over x and dY, each of which writes one slot.
#include "braid/nn/weight_grads.h"

#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>

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

// Returns true if tensor ranks hold copies of the parameter, and each computes a part of its gradient.
bool is_copy(const param::Parameter& param) {
  const std::vector<mesh::Piece>& pieces = param.placement.pieces;
  return !pieces.empty() && std::ranges::all_of(pieces, [](const mesh::Piece& piece) { return piece.copies > 1; });
}

// Returns one row, in the type of slots.
at::Tensor summed_rows(const at::Tensor& dy_nc) {
  const at::ScalarType type = at::toOpMathType(dy_nc.scalar_type());
  at::Tensor sum_1c = at::empty({1, dy_nc.size(1)}, dy_nc.options().dtype(type));
  kernels::accumulate_row_sum(sum_1c.view({-1}), dy_nc, 0);
  return sum_1c;
}

}  // namespace

void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const param::WeightGradQueue& queue,
              const kernels::InnerParts& parts, const at::Tensor& bias) {
  queue.parts() ? kernels::product_in_parts(out, a, b, parts, bias) : kernels::product_out(out, a, b, bias);
}

std::optional<at::Tensor> any_trained(std::initializer_list<const param::Parameter*> params) {
  for (const param::Parameter* const param : params) {
    if (param && param->is_trained()) return param->data;
  }
  return std::nullopt;
}

void push_product(const GradTarget& target, at::Tensor dy_no, at::Tensor x_ni) {
  const auto accumulate = target.queue->parts() ? kernels::accumulate_product_in_order : kernels::accumulate_product;
  push(target, [dy = std::move(dy_no), x = std::move(x_ni), accumulate](const param::GradSlot& slot) {
    accumulate(slot.target, dy, x, slot.beta);
  });
}

void push_row_sum(const GradTarget& target, at::Tensor dy_nc, int64_t begin) {
  if (is_copy(*target.param.param)) dy_nc = summed_rows(dy_nc);
  push(target, [dy = std::move(dy_nc), begin](const param::GradSlot& slot) {
    at::Tensor flat = slot.target.view({-1});
    const int64_t end = begin + dy.size(1);
    kernels::accumulate_row_sum(flat.narrow(0, begin, dy.size(1)), dy, slot.beta);
    if (slot.beta != 0) return;
    flat.narrow(0, 0, begin).zero_();
    flat.narrow(0, end, flat.numel() - end).zero_();
  });
}

void push_token_sum(const GradTarget& target, const at::Tensor& dy_btc) {
  const int parts = target.queue->parts().of_tokens;
  if (parts == 0) return push_row_sum(target, dy_btc.reshape({-1, dy_btc.size(-1)}));
  if (!target.param.param->is_trained()) return;
  std::vector<at::Tensor> sums;
  for (int part = 0; part < parts; ++part) {
    const int64_t begin = kernels::part_begin(dy_btc.size(1), part, parts);
    const int64_t count = kernels::part_begin(dy_btc.size(1), part + 1, parts) - begin;
    sums.push_back(summed_rows(dy_btc.narrow(1, begin, count).reshape({-1, dy_btc.size(-1)})).view({-1}));
  }
  push_value(target, kernels::tree_sum(at::stack(sums)));
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
