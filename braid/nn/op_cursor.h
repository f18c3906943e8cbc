// The ops of a piece in their order, as the pass that lowers them goes through them and looks ahead.
#pragma once

#include "braid/model/graph.h"
#include "braid/nn/model.h"

namespace braid::nn {

class OpCursor {
 public:
  // REQUIRES: the piece has an op; `block` outlives this.
  OpCursor(const model::BlockGraph& block, const ModelPiece& piece);

  // The values that the piece begins and ends with. REQUIRES, for input(): no op has been taken.
  int input() const { return block_.ops[next_].in[0]; }
  int output() const { return block_.ops[end_ - 1].out; }

  // Returns the next op and moves past it; null at the end.
  const model::Op* take() { return next_ < end_ ? &block_.ops[next_++] : nullptr; }
  // The same if that op is of this kind and alone reads `value`; else returns null and stays.
  const model::Op* take(int value, model::OpKind kind);
  // The same if that op is a norm of `value`, which others may read too.
  const model::Op* take_norm(int value);

  // Returns the op `skipped` ops behind the next if it is of this kind and alone reads `value`; else null.
  const model::Op* next_reader(int value, model::OpKind kind, int skipped = 0) const;
  // Returns true if that op is a residual, or dropout before a residual.
  bool leads_to_residual(int value, int skipped = 0) const;

 private:
  const model::BlockGraph& block_;
  int next_, end_;
};

}  // namespace braid::nn
