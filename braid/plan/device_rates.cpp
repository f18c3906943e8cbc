// The roofline model of a device. The height of the roof depends on the size of the product.
#include "braid/plan/device_rates.h"

#include <algorithm>
#include <cmath>

namespace braid::plan {
namespace {

bool narrow(DType type) { return type == DType::BFloat16 || type == DType::Float16; }

// Returns the type whose rows are used for `type`: itself, the other 16-bit type, or float32.
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
    if (row.type == known) products_.push_back({std::log(row.flops), row.share});
  }
  const DType attends = standing_for(group.attention, type);
  for (const AttentionRate& row : group.attention) {
    if (row.type != attends) continue;
    forward_.push_back({std::log(row.context), row.forward});
    backward_.push_back({std::log(row.context), row.backward});
  }
  for (const StreamRate& row : group.streams) streams_.push_back({std::log(row.bytes), row.bytes_per_second});
}

double DeviceRates::at(const Rows& rows, double size, double without) {
  if (rows.empty()) return without;
  const double log_size = std::log(std::max(size, 1.0));
  if (log_size <= rows.front().log_size) return rows.front().value;
  for (size_t i = 1; i < rows.size(); ++i) {
    const Row &low = rows[i - 1], &high = rows[i];
    if (log_size > high.log_size) continue;
    return low.value + (high.value - low.value) * (log_size - low.log_size) / (high.log_size - low.log_size);
  }
  return rows.back().value;
}

double DeviceRates::share(double flops) const { return at(products_, flops, 1); }

double DeviceRates::seconds(const Product& product) const {
  return std::max(product.flops / (peak_ * share(product.flops)), product.bytes / memory_rate_);
}

double DeviceRates::attention_seconds(const Product& product, double context, AttentionPass pass) const {
  const Rows& rows = pass == AttentionPass::Forward ? forward_ : backward_;
  return rows.empty() ? seconds(product) : product.flops / at(rows, context, peak_);
}

double DeviceRates::stream_seconds(double bytes, double tensor_bytes) const {
  return bytes / at(streams_, tensor_bytes, memory_rate_);
}

double DeviceRates::best_rate() const {
  double best = products_.empty() ? peak_ : 0;
  for (const Row& row : products_) best = std::max(best, row.value * peak_);
  for (const Rows* rows : {&forward_, &backward_}) {
    for (const Row& row : *rows) best = std::max(best, row.value);
  }
  return best;
}

}  // namespace braid::plan
