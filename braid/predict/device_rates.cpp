// The roofline of a device, with a curve for its roof.
#include "braid/predict/device_rates.h"

#include <algorithm>
#include <cmath>

namespace braid {
namespace {

bool narrow(DType type) { return type == DType::BFloat16 || type == DType::Float16; }

// The type whose figures stand for `type`: itself, the other of 16 bits, or float32.
template <class Row>
DType standing_for(const std::vector<Row>& rows, DType type) {
  const auto known = [&](DType wanted) {
    return std::ranges::any_of(rows, [&](const Row& row) { return row.type == wanted; });
  };
  const DType other = type == DType::BFloat16 ? DType::Float16 : DType::BFloat16;
  if (known(type)) return type;
  return narrow(type) && known(other) ? other : DType::Float32;
}

double peak_of(const DeviceGroup& group, DType type) {
  const auto row = std::ranges::find(group.peaks, standing_for(group.peaks, type), &PeakRate::type);
  return row == group.peaks.end() ? 1e12 : row->flops;
}

}  // namespace

DeviceRates::DeviceRates(const DeviceGroup& group, DType type)
    : peak_(peak_of(group, type)), memory_rate_(group.memory_bytes_per_second) {
  const DType known = standing_for(group.shares, type);
  for (const ProductShare& row : group.shares) {
    if (row.type == known) rows_.push_back({std::log(row.flops), row.share});
  }
}

double DeviceRates::share(double flops) const {
  if (rows_.empty()) return 1;
  const double at = std::log(std::max(flops, 1.0));
  if (at <= rows_.front().log_flops) return rows_.front().share;
  for (size_t i = 1; i < rows_.size(); ++i) {
    const Row &low = rows_[i - 1], &high = rows_[i];
    if (at > high.log_flops) continue;
    return low.share + (high.share - low.share) * (at - low.log_flops) / (high.log_flops - low.log_flops);
  }
  return rows_.back().share;
}

double DeviceRates::seconds(const Product& product) const {
  return std::max(product.flops / (peak_ * share(product.flops)), product.bytes / memory_rate_);
}

double DeviceRates::best_rate() const {
  double best = rows_.empty() ? 1 : 0;
  for (const Row& row : rows_) best = std::max(best, row.share);
  return best * peak_;
}

}  // namespace braid
