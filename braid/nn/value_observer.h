// An observer of the values that a model's ops make, such as a comparison with another run. A model without an observer
// has no calls for it.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid::nn {

struct Microbatch;

// The place of a value in its block.
enum class ValueKind {
  Input,   // the hidden state that a piece of the model begins with
  Output,  // the output of an op, summed over tensor ranks if these make parts of it
  Logits,  // this rank's logits, made beside the loss and without gradients
};

// FusedWithNorm: its own gradient lacks the part of the norm behind it, which the same call makes.
enum class ValueGradient { Whole, FusedWithNorm };

struct MadeValue {
  ValueKind kind = ValueKind::Output;
  int block = 0;  // of the model's list
  int value = 0;  // number in BlockGraph::values; of logits that of the loss
  ValueGradient gradient = ValueGradient::Whole;
};

class ValueObserver {
 public:
  virtual ~ValueObserver() = default;
  // Called on the rank's thread as soon as the value exists. Later ops may write over its memory. If the observer
  // assigns another tensor to `value`, the ops behind it read that one.
  virtual void made(const MadeValue& place, const Microbatch& microbatch, at::Tensor& value) = 0;
};

}  // namespace braid::nn
