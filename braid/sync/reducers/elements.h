// Calls a function template on a tensor's raw elements, float or double: the types gradients have.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::sync {

// call(T* elements) with T the tensor's type.
template <class Call>
void with_elements(const at::Tensor& tensor, const Call& call) {
  if (tensor.scalar_type() == at::kDouble) {
    call(tensor.mutable_data_ptr<double>());
  } else {
    call(tensor.mutable_data_ptr<float>());
  }
}

}  // namespace braid::sync
