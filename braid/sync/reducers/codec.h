// Lossy messages: what a compressor says of one run of gradients, and what is heard.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

namespace braid::sync {

// Calls a function template on a tensor's raw elements, float or double: the types gradients have.

// call(T* elements) with T the tensor's type.
template <class Call>
void with_elements(const at::Tensor& tensor, const Call& call) {
  if (tensor.scalar_type() == at::kDouble) {
    call(tensor.mutable_data_ptr<double>());
  } else {
    call(tensor.mutable_data_ptr<float>());
  }
}

// Tensors are contiguous, one dim, float32 or float64. On the wire values are float32. NaN or infinity in a run comes
// out as some NaN or infinity of the same run, so that a run that diverges is noticed. Zeros beyond a run's end are not
// its business: runs hold no padding.
class Codec {
 public:
  virtual ~Codec() = default;
  // Returns the bytes of the message for `count` elements, which depend on nothing else.
  virtual int64_t num_bytes(int64_t count) const = 0;
  // Writes num_bytes() to `message` and takes off `values` what it says: what is left has not been told.
  virtual void encode(const at::Tensor& values, std::byte* message) const = 0;
  // sum += what the message says; the same bits wherever it is heard.
  virtual void add(const std::byte* message, const at::Tensor& sum) const = 0;
};

}  // namespace braid::sync
