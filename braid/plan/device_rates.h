// The compute rates of one device.
#pragma once

#include <vector>

#include "braid/plan/cluster.h"

namespace braid::plan {

// A matrix product, or a batch of them: its operations (a multiply-add counts as two), and the bytes that it moves to
// and from memory.
struct Product {
  double flops = 0;
  double bytes = 0;
};

enum class AttentionPass { Forward, Backward };

class DeviceRates {
 public:
  // Takes the rates of `type` from the group. If a table of the group (peaks, shares, attention) has no rows of `type`,
  // other rows replace them: for a 16-bit type the rows of the other 16-bit type, or else those of float32. If no peak
  // is found, it is 1e12 operations per second.
  DeviceRates(const DeviceGroup& group, DType type);

  // Returns the seconds of a product by the roofline model: max(flops / (peak x share), bytes / memory rate). The share
  // is the fraction of the peak that a product of this size reaches. It is interpolated between the rows of
  // DeviceGroup::shares, linearly in the logarithm of flops. Beyond them it is that of the nearest row. Without rows it
  // is 1.
  double seconds(const Product& product) const;
  // Returns the seconds of fused attention over sequences of `context` tokens. The rates of DeviceGroup::attention are
  // interpolated like shares, in the logarithm of `context`. Without rows attention is timed as a matrix product.
  double attention_seconds(const Product& product, double context, AttentionPass pass) const;
  // Returns the seconds of memory-bound kernels that read and write `bytes` in all, in tensors of `tensor_bytes` each.
  double stream_seconds(double bytes, double tensor_bytes) const;

  double peak() const { return peak_; }  // operations per second
  double best_rate() const;              // highest rate of all rows, in operations per second; nothing is faster
  double share(double flops) const;

 private:
  // A row of a table: a value at a size.
  struct Row {
    double log_size = 0;
    double value = 1;
  };
  using Rows = std::vector<Row>;
  static double at(const Rows& rows, double size, double without);

  double peak_ = 0;
  double memory_rate_ = 0;
  Rows products_, forward_, backward_, streams_;
};

}  // namespace braid::plan
