// Each row gets a place in the order of arrival. take() returns the rows in ascending order.
#include "braid/sync/server/row_sum.h"

#include <ATen/ops/empty.h>

#include "braid/base/errors.h"

namespace braid::sync::server {

void RowSum::add(const at::Tensor& index, const at::Tensor& values) {
  if (!index.defined() || index.numel() == 0) return;
  check(values.scalar_type() == type_ && values.numel() == index.numel() * width_ && values.is_contiguous() &&
            index.is_contiguous(),
        "a row of values for each index");
  const int64_t* rows = index.const_data_ptr<int64_t>();
  with_value_of(type_, [&](auto zero) {
    using T = decltype(zero);
    const T* value = values.const_data_ptr<T>();
    for (int64_t i = 0; i < index.numel(); ++i) {
      const auto [found, is_new] = place_.try_emplace(rows[i], place_.size());
      if (is_new) sums_.insert(sums_.end(), static_cast<size_t>(width_), -0.0);  // x + -0 is x, also for x = -0
      double* sum = sums_.data() + found->second * static_cast<size_t>(width_);
      for (int64_t j = 0; j < width_; ++j) sum[j] = static_cast<T>(static_cast<T>(sum[j]) + *value++);
    }
  });
}

TableRows RowSum::take() {
  const auto count = static_cast<int64_t>(place_.size());
  TableRows rows{at::empty({count}, at::kLong), at::empty({count, width_}, type_)};
  int64_t* index = rows.index.mutable_data_ptr<int64_t>();
  with_value_of(type_, [&](auto zero) {
    using T = decltype(zero);
    T* value = rows.values.mutable_data_ptr<T>();
    for (const auto& [row, place] : place_) {
      *index++ = row;
      const double* sum = sums_.data() + place * static_cast<size_t>(width_);
      for (int64_t j = 0; j < width_; ++j) *value++ = static_cast<T>(sum[j]);
    }
  });
  place_.clear();
  sums_.clear();
  return rows;
}

}  // namespace braid::sync::server
