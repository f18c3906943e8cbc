// The compute rates of one device.
#pragma once

#include <vector>

#include "braid/plan/cluster.h"

namespace braid::plan {

// A matrix product, or a batch of them: its operations (a multiply-add is two), and what it moves to and from memory.
struct Product {
  double flops = 0;
  double bytes = 0;
};

enum class AttentionPass { Forward, Backward };

class DeviceRates {
 public:
  // The rates of matrix products of one type. If the group has no peak or efficiencies of that type, those of the other
  // 16-bit type are used, else float32's; without any, 1e12 a second.
  DeviceRates(const DeviceGroup& group, DType type);

  // The roofline: max(flops / (peak x share), bytes / memory rate). The share is linear in the logarithm of flops
  // between the rows of the group, and that of the nearest row outside of them; 1 without rows.
  double seconds(const Product& product) const;
  // Fused attention over sequences of `context` tokens, whose rows stand for each other as those of products do.
  double attention_seconds(const Product& product, double context, AttentionPass pass) const;
  // Passes over memory that compute next to nothing: `bytes` in all, through tensors of `tensor_bytes`.
  double stream_seconds(double bytes, double tensor_bytes) const;

  double peak() const { return peak_; }  // flops a second
  double best_rate() const;              // of the best row: no product is faster
  double share(double flops) const;

 private:
  // A row of a table that is linear in the logarithm of a size between rows.
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
