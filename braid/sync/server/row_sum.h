// Sums of rows by their number. The first contribution of a row starts its sum; the others are added in order of
// arrival.
#pragma once

#include <map>
#include <vector>

#include "braid/sync/server/keyed_tensors.h"

namespace braid::sync::server {

class RowSum {
 public:
  RowSum(at::ScalarType type, int64_t width) : type_(type), width_(width) {}

  // Adds rows. They may come in any order and more than once; `values` is [n, width].
  void add(const at::Tensor& index, const at::Tensor& values);
  // Returns the sums in ascending order of rows, in new tensors. Afterwards all sums are empty.
  TableRows take();

 private:
  at::ScalarType type_;
  int64_t width_;
  std::map<int64_t, size_t> place_;  // index of a row in `sums_`, counted in rows
  std::vector<double> sums_;         // float32 sums are rounded to float32 at every addition
};

}  // namespace braid::sync::server
