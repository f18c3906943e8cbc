// Notices operations of the calling thread that draw from the process-wide random generator of the CPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace braid::modules {

class RandomDrawWatch {
 public:
  RandomDrawWatch();
  ~RandomDrawWatch();
  RandomDrawWatch(const RandomDrawWatch&) = delete;
  RandomDrawWatch& operator=(const RandomDrawWatch&) = delete;

  // "aten::bernoulli_": what could have drawn since construction, each once, if the generator has moved; else empty. So
  // an operation with a generator of its own is not among them, unless another thread drew meanwhile. Those within the
  // life of an inner watch are the inner one's.
  std::vector<std::string> operations() const;

 private:
  struct Observer;

  at::Tensor state_;  // of the generator, at construction
  std::vector<std::string> operations_;
  RandomDrawWatch* outer_;
  uint64_t callback_;
};

}  // namespace braid::modules
