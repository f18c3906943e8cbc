// Comparing, and making inputs.
#include "tools/check_cuda/verdict.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>

#include "braid/base/text.h"

namespace braid::cuda_check {

double rounding(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return 2e-13;
    case at::kHalf:
      return 1e-3;
    case at::kBFloat16:
      return 8e-3;
    default:
      return 4e-6;
  }
}

double sum_rounding(const Setting& setting, int64_t rows) {
  return rounding(setting.math()) * std::sqrt(static_cast<double>(rows + 1));
}

void Verdict::note(const std::string& what, double ratio) {
  ++num_compared_;
  if (!where_.empty() && !(ratio > worst_)) return;
  worst_ = ratio;
  where_ = what;
}

void Verdict::require(const std::string& what, bool holds) {
  note(what, holds ? 0 : std::numeric_limits<double>::infinity());
}

void Verdict::compare(const std::string& what, const at::Tensor& found, const at::Tensor& exact, double allowed) {
  if (found.sizes() != exact.sizes()) return require(what + ", another shape", false);
  if (found.numel() == 0) return;
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  const at::Tensor f = found.detach().cpu().to(at::kDouble), e = exact.to(at::kDouble);
  const at::Tensor same = f.eq(e).logical_or(f.isnan().logical_and(e.isnan()));
  const at::Tensor ratio = f.sub(e).abs().div(e.abs().add(1).mul(allowed)).masked_fill(same, 0);
  note(what, ratio.nan_to_num(kWrong, kWrong, kWrong).max().item<double>());
}

std::vector<Shape> shapes(Sizes sizes) {
  std::vector<Shape> all{{1, 1}, {7, 3}, {35, 64}, {35, 64, Start::OneOff}, {70, 768}, {3, 4100}};
  if (sizes == Sizes::Small) return all;
  all.insert(all.end(), {{70000, 8}, {70000, 5}, {600, 2048}, {48, 8192}, {40, 16384}});
  return all;
}

std::string text(const Shape& shape) {
  return cat(shape.rows, " x ", shape.width, shape.start == Start::OneOff ? ", one element off" : "");
}

at::Tensor placed(const Setting& setting, const at::Tensor& exact, Start start) {
  const int64_t off = start == Start::OneOff ? 1 : 0;
  const auto options = at::TensorOptions(setting.dtype).device(setting.device);
  const at::Tensor rows = at::empty({exact.numel() + off}, options).narrow(0, off, exact.numel()).view(exact.sizes());
  return rows.copy_(exact);
}

Input input(const Setting& setting, at::IntArrayRef shape, const InputSpec& spec) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  const at::Tensor place = at::arange(count, at::kDouble);
  const at::Tensor values = place.square().remainder(1e6).add(31 * spec.seed).mul(1.7).sin().mul(spec.size);
  const at::Tensor exact = values.to(setting.dtype).to(at::kDouble).view(shape);
  return {placed(setting, exact, spec.start), exact};
}

}  // namespace braid::cuda_check
