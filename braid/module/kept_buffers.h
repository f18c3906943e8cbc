// Keeps the values of buffers (batch norm's running statistics and the like); its destructor puts them back.
#pragma once

#include "braid/module/layer_list.h"

namespace braid::modules {

class KeptBuffers {
 public:
  explicit KeptBuffers(Tensors buffers);
  ~KeptBuffers();
  KeptBuffers(const KeptBuffers&) = delete;
  KeptBuffers& operator=(const KeptBuffers&) = delete;

 private:
  Tensors buffers_, kept_;
};

}  // namespace braid::modules
