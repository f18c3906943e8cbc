// Finds tensors that were written in place.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "braid/base/text.h"

namespace braid::modules {

// Tensors that must not be written from now on. Holds their version counters, not their memory.
class WriteDetector {
 public:
  void add(const char* kind, size_t index, const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.is_inference()) return;  // inference tensors have no versions
    const c10::VariableVersion& counter = tensor.unsafeGetTensorImpl()->version_counter();
    tensors_.push_back({kind, index, counter, counter.current_version()});
  }
  void add(const char* kind, const std::vector<at::Tensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) add(kind, i, tensors[i]);
  }
  // Returns the kind and the index of a tensor that was written, as "input 0"; empty: there is none.
  std::string written() const {
    for (const Watched& each : tensors_) {
      if (each.counter.current_version() != each.version) return cat(each.kind, " ", each.index);
    }
    return "";
  }

 private:
  struct Watched {
    const char* kind;
    size_t index;
    c10::VariableVersion counter;
    uint32_t version;
  };
  std::vector<Watched> tensors_;
};

}  // namespace braid::modules
