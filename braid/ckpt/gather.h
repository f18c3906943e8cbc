// Which rank sends which box of which tensor to rank 0, and the sending. It knows no files.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/safetensors.h"

namespace braid {

struct BoxSource {
  int rank;
  Box box;
};

// A tensor of the whole world. The boxes of its sources are disjoint and cover it.
struct GatheredTensor {
  TensorInfo info;
  std::vector<BoxSource> sources;
};

class Gather {
 public:
  // Collective: every rank announces its boxes. Of equal boxes, that of the lowest rank is sent. Throws
  // InternalError, on every rank, naming a tensor that ranks describe differently or that the boxes do not cover.
  // `tensors` and `world` must outlive this.
  Gather(const std::vector<PlacedTensor>& tensors, Communicator& world);

  const std::vector<GatheredTensor>& tensors() const { return gathered_; }  // by name; equal on every rank
  // Collective, tensor by tensor. On rank 0 the whole tensor, contiguous on the host; elsewhere undefined.
  at::Tensor operator()(const GatheredTensor& tensor) const;

 private:
  at::Tensor own(const std::string& name, const Box& box) const;
  at::Tensor received(const GatheredTensor& tensor) const;
  void send(const GatheredTensor& tensor) const;

  const std::vector<PlacedTensor>& tensors_;
  Communicator& world_;
  std::vector<GatheredTensor> gathered_;
};

}  // namespace braid
