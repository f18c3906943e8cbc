// Sums of rows by number: a row's first contribution starts its sum, the others are added in the order they come.
#pragma once

#include <map>
#include <vector>

#include "braid/sync/server/keyed_tensors.h"

namespace braid::sync::server {

class RowSum {
 public:
  RowSum(at::ScalarType type, int64_t width) : type_(type), width_(width) {}

  // Rows may come in any order and more than once; `values` is [n, width].
  void add(const at::Tensor& index, const at::Tensor& values);
  // The sums so far, ascending, in tensors of their own; starts again at nothing.
  TableRows take();

 private:
  at::ScalarType type_;
  int64_t width_;
  std::map<int64_t, size_t> place_;  // of a row in `sums_`, counted in rows
  std::vector<double> sums_;         // float32 sums are rounded to float32 at every addition
};

}  // namespace braid::sync::server
