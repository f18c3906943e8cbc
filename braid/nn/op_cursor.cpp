// Looks at the ops ahead.
#include "braid/nn/op_cursor.h"

#include <algorithm>

namespace braid::nn {
namespace {

using model::Op;
using model::OpKind;

// Returns the number of the first op of a part, or of all ops if the block has fewer parts.
int first_op(const model::BlockGraph& block, int part) {
  if (part == 0) return 0;
  return part <= std::ssize(block.cuts) ? block.cuts[part - 1] : static_cast<int>(block.ops.size());
}

}  // namespace

OpCursor::OpCursor(const model::BlockGraph& block, const ModelPiece& piece)
    : block_(block), next_(first_op(block, piece.begin)), end_(first_op(block, piece.end)) {}

const Op* OpCursor::take(int value, OpKind kind) { return next_reader(value, kind) ? take() : nullptr; }

const Op* OpCursor::take_norm(int value) {
  if (next_ == end_) return nullptr;
  const Op& op = block_.ops[next_];
  const bool is_norm = op.kind == OpKind::LayerNorm || op.kind == OpKind::RmsNorm;
  return is_norm && op.in[0] == value ? take() : nullptr;
}

const Op* OpCursor::next_reader(int value, OpKind kind, int skipped) const {
  if (next_ + skipped >= end_) return nullptr;
  const Op& op = block_.ops[next_ + skipped];
  const auto reads = [&](const Op& reader) { return std::ranges::count(reader.in, value) > 0; };
  const bool alone = std::ranges::count_if(block_.ops, reads) == 1 && std::ranges::count(op.in, value) == 1;
  return op.kind == kind && op.in[0] == value && alone ? &op : nullptr;
}

bool OpCursor::leads_to_residual(int value, int skipped) const {
  const Op* const drop = next_reader(value, OpKind::Dropout, skipped);
  return drop ? next_reader(drop->out, OpKind::Residual, skipped + 1) : next_reader(value, OpKind::Residual, skipped);
}

}  // namespace braid::nn
