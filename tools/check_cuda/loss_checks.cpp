// The loss, what is summed over rows, weight gradients and dropout's mask.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <limits>

#include "braid/device/launch_shape.h"
#include "braid/nn/kernels/cross_entropy.h"
#include "braid/nn/kernels/masked.h"
#include "braid/nn/kernels/on_device.h"
#include "braid/nn/kernels/product.h"
#include "braid/nn/kernels/row_sum.h"
#include "braid/nn/kernels/scatter.h"
#include "tools/check_cuda/kernel_checks.h"

namespace braid::cuda_check {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// Irregular integers in [0, bound).
at::Tensor integers(int64_t count, int64_t bound) {
  return at::arange(count, at::kLong).mul(7919).add(13).remainder(1000003).remainder(bound);
}

at::Tensor slot(const Setting& s, at::IntArrayRef shape, double value) {
  return at::full(shape, value, at::TensorOptions(s.math()).device(s.device));
}

struct LossCase {
  int64_t rows, width, real;
  Start start = Start::Aligned;
};

// Logits with garbage in the padding, single -inf and, in the second row, so many that some threads see nothing else.
at::Tensor exact_logits(const Setting& s, const LossCase& c) {
  const at::Tensor x = input(s, {c.rows, c.width}, {1, 6}).exact;
  x.narrow(1, c.real, c.width - c.real).fill_(kNoNumber);
  if (c.real > 8) x.select(0, 0).narrow(0, 3, 1).fill_(-kInfinite);
  if (c.rows > 1 && c.real > 8) x.select(0, 1).narrow(0, 0, c.real - 2).fill_(-kInfinite);
  return x;
}

void check_loss_of(const Setting& s, const LossCase& c, Verdict& verdict) {
  const std::string at = cat(", ", c.rows, " x ", c.width, ", ", c.real, " real");
  const at::Tensor padded = exact_logits(s, c), x = padded.narrow(1, 0, c.real);
  at::Tensor column = integers(c.rows, c.real);
  if (c.rows > 2) column.select(0, 2).fill_(-1);
  const at::Tensor logits = placed(s, padded, c.start), targets = column.to(s.device);
  const kernels::SoftmaxSums got = kernels::softmax_sums(logits, c.real, targets);
  const at::Tensor max = x.amax({1}), sum = x.sub(max.unsqueeze(1)).exp().sum(1);
  const at::Tensor ours = column.ge(0).to(at::kDouble), place = column.clamp_min(0).unsqueeze(1);
  verdict.compare("max" + at, got.max_n, max, 0);
  verdict.compare("sum" + at, got.sum_n, sum, 4 * rounding(s.math()));
  verdict.compare("target" + at, got.target_n, x.gather(1, place).squeeze(1).masked_fill(column.lt(0), 0), 0);

  const double step = std::min<double>(4096, c.real);  // so that gradients are of the order of 1
  kernels::softmax_gradient_(logits, {c.real, targets, got.max_n, got.sum_n, slot(s, {}, step)});
  const at::Tensor exact = at::full({c.rows, c.width}, 0, at::kDouble);
  exact.narrow(1, 0, c.real).copy_(x.softmax(1).scatter_add(1, place, ours.neg().unsqueeze(1)).mul(step));
  verdict.compare("gradient" + at, logits, exact, rounding(s.dtype));
}

void check_loss_edges(const Setting& s, Verdict& verdict) {
  const at::Tensor one = input(s, {2, 40}, {1}).device, none = at::full({2}, -1, at::kLong).to(s.device);
  const kernels::SoftmaxSums nothing = kernels::softmax_sums(one, 0, none);
  verdict.compare("max of no real column", nothing.max_n, at::full({2}, -kInfinite, at::kDouble), 0);
  verdict.compare("sum of no real column", nothing.sum_n, at::full({2}, 0, at::kDouble), 0);
  kernels::softmax_gradient_(one, {0, none, slot(s, {2}, 1), slot(s, {2}, 1), slot(s, {}, 1)});
  verdict.compare("gradient of no real column", one, at::full({2, 40}, 0, at::kDouble), 0);
  for (const double bad : {kNoNumber, kInfinite}) {
    const at::Tensor logits = input(s, {1, 40}, {1}).device;
    logits.select(1, 33).fill_(bad);
    const at::Tensor sum = kernels::softmax_sums(logits, 40, at::full({1}, 0, at::kLong).to(s.device)).sum_n;
    verdict.require(cat("a logit of ", bad, " shows in the sum"), !sum.cpu().isfinite().item<bool>());
  }
}

}  // namespace

void check_loss(const Setting& s, Verdict& verdict) {
  std::vector<LossCase> cases{{5, 1, 1},      {5, 7, 5},      {5, 16, 16},
                              {5, 64, 64},    {5, 72, 65},    {5, 72, 65, Start::OneOff},
                              {5, 1000, 997}, {3, 8192, 8100}};
  if (s.sizes == Sizes::Full) cases.insert(cases.end(), {{70000, 16, 11}, {64, 50304, 50257}, {8, 128256, 128256}});
  for (const LossCase& c : cases) check_loss_of(s, c, verdict);
  check_loss_edges(s, verdict);
}

void check_row_sum(const Setting& s, Verdict& verdict) {
  for (const Shape& shape : shapes(s.sizes)) {
    const Input x = input(s, {shape.rows, shape.width}, {1, 2, shape.start});
    const at::Tensor sums = slot(s, {shape.width}, kNoNumber), exact = x.exact.sum(0);
    kernels::accumulate_row_sum(sums, x.device, 0);
    verdict.compare("over garbage, " + text(shape), sums, exact, sum_rounding(s, shape.rows));
    kernels::accumulate_row_sum(sums, x.device, 1);
    verdict.compare("added, " + text(shape), sums, exact.mul(2), 2 * sum_rounding(s, shape.rows));
  }
  const at::Tensor sums = slot(s, {7}, kNoNumber);
  kernels::accumulate_row_sum(sums, slot(s, {1}, 0.5).to(s.dtype).expand({4, 7}), 0);
  verdict.compare("of an expanded gradient", sums, at::full({7}, 2, at::kDouble), 0);
  kernels::accumulate_row_sum(sums, slot(s, {0, 7}, 1).to(s.dtype), 0);
  verdict.compare("of no rows", sums, at::full({7}, 0, at::kDouble), 0);
}

void check_embedding_gradient(const Setting& s, Verdict& verdict) {
  for (Shape shape : shapes(s.sizes)) {
    shape.rows += 20;
    const Input x = input(s, {shape.rows, shape.width}, {1, 2, shape.start});
    const at::Tensor rows = integers(shape.rows, 7);
    const at::Tensor exact = at::full({9, shape.width}, 0.25, at::kDouble);
    const at::Tensor table = slot(s, {9, shape.width}, 0.25);
    kernels::add_rows_(table, x.device, rows.to(s.device));
    verdict.compare(text(shape), table, exact.index_add(0, rows, x.exact), sum_rounding(s, shape.rows));
  }
}

// Operands whose rows lie apart are read where they are.
void check_weight_gradient(const Setting& s, Verdict& verdict) {
  struct Case {
    int64_t n, o, i;
  };
  std::vector<Case> cases{{1, 1, 1}, {5, 3, 7}, {37, 24, 40}, {200, 64, 128}};
  if (s.sizes == Sizes::Full) cases.push_back({4096, 768, 3072});
  for (const auto& [n, o, i] : cases) {
    const Input dy = input(s, {n, o + 16}, {1}), x = input(s, {n, i}, {2});
    const at::Tensor dw = slot(s, {o, i}, kNoNumber), narrow = dy.device.narrow(1, 8, o);
    const at::Tensor exact = dy.exact.narrow(1, 8, o).t().mm(x.exact);
    const std::string at = cat(", ", n, " rows, ", o, " x ", i);
    kernels::accumulate_product(dw, narrow, x.device, 0);
    verdict.compare("over garbage" + at, dw, exact, sum_rounding(s, n));
    kernels::accumulate_product(dw, narrow, x.device, 1);
    verdict.compare("added" + at, dw, exact.mul(2), 2 * sum_rounding(s, n));
  }
}

void check_dropout_mask(const Setting& s, Verdict& verdict) {
  if (s.device.is_cpu() || s.dtype != at::kFloat) return;
  const int64_t beyond_the_grid = 4 * device::kMostBlocks * device::kFlatThreads + 5;
  for (const int64_t count : {int64_t{1}, int64_t{1003}, s.sizes == Sizes::Full ? beyond_the_grid : 4096}) {
    const uint64_t key = 0x123456789abcdef;
    const at::Tensor key_1 = at::full({1}, static_cast<int64_t>(key), at::kLong).to(s.device);
    const at::Tensor like = at::empty({count}, at::TensorOptions(at::kHalf).device(s.device));
    const at::Tensor mask = kernels::on_device::keep_mask(like, {key_1, 3, 0.9});
    const at::Tensor on_host = kernels::keep_mask(at::empty({count}), {key, 3, 0.9});
    verdict.require(cat(count, " elements are the host's"), mask.cpu().equal(on_host));
  }
  const uint64_t key = 5;
  const at::Tensor key_1 = at::full({1}, int64_t{5}, at::kLong).to(s.device), like = at::empty({3, 4, 5});
  const kernels::TokenPart second{1, 3};
  const at::Tensor mask = kernels::on_device::keep_mask(like.to(s.device), {key_1, 3, 0.5, second});
  verdict.require("a part of the tokens is the host's",
                  mask.cpu().equal(kernels::keep_mask(like, {key, 3, 0.5, second})));
}

}  // namespace braid::cuda_check
