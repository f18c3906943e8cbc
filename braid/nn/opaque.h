// An op of a model that the program computes itself, with LibTorch's functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/model/dims.h"
#include "braid/model/graph.h"
#include "braid/model/model_spec.h"
#include "braid/nn/weight_grads.h"

namespace braid::model {

// What a token's output depends on: Apart: the same token of the input. Together: any token.
enum class OpaqueTokens { Apart, Together };

struct OpaqueFunction {
  // Returns the op's output, of the type of `x`. It is run with autograd, which makes the backward. An argument that it
  // does not use gets a gradient of zero. REQUIRES: it depends on its arguments alone, and the same arguments give the
  // same bits; it does not write to them.
  std::function<at::Tensor(const at::Tensor& x, const std::vector<at::Tensor>& params)> forward;
  // Text is generated with functions of tokens apart alone: a call gets only the new tokens.
  OpaqueTokens tokens = OpaqueTokens::Together;
};

}  // namespace braid::model

namespace braid::nn {

struct OpaqueParam {
  GradTarget target;
  Communicator* sums = nullptr;  // the ranks whose gradients are added; null: the gradient is whole
};

// Own: later ops may write to the output. Shared: it may have the memory of an argument, or of the function's graph.
enum class OpaqueMemory { Shared, Own };

struct OpaqueCall {
  std::shared_ptr<const model::OpaqueFunction> function;
  model::Dims in, out;
  model::Extents extents;  // on this rank
  std::string rule;        // of the op, for messages
  std::vector<OpaqueParam> params;
  OpaqueMemory memory = OpaqueMemory::Own;
};

// Returns the call of the op on a tensor rank, without the targets of gradients.
OpaqueCall opaque_call(const ModelSpec& spec, const model::BlockGraph& block, const model::Op& op,
                       Communicator& tensor);

// Runs the function and returns its output, which is contiguous. Its graph is kept until backward, which leaves the
// gradients of the parameters on the queue. Throws ConfigError if the output has other dims or another type than the
// op.
at::Tensor opaque(const at::Tensor& x, const OpaqueCall& call);

}  // namespace braid::nn
