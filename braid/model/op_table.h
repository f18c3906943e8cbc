// The costs of each kind of op, in one row. Costs of the embedding and the loss, of rotary tables, dropout masks and
// logits are not in the table (plan/block_work.h, plan/braid_memory.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/model/graph.h"
#include "braid/model/terms.h"

namespace braid::model {

// An op in its block.
struct OpAt {
  const BlockGraph& block;
  const Op& op;

  const Dims& in() const { return block.values[op.in[0]]; }
  const Dims& out() const { return block.values[op.out]; }
  // Returns true if each row of the input belongs to an expert. Parameters then have a part for each expert.
  bool is_among_experts() const { return !in().empty() && in()[0].segments[0] == "r"; }
  // Returns the number of rows of the input: all its dims but the last.
  Terms rows() const { return Terms(Dims(in().begin(), in().end() - 1)); }
  // Returns the elements of the parameters that one row meets: with experts, those of one.
  Terms weights() const;
};

// The elements that memory-bound kernels read and write. They are those of unfused ops, even where kernels are fused:
// rates are calibrated for them.
struct Traffic {
  Terms forward, backward;
};

// Yes: the op keeps its input for backward.
enum class KeepsInput { No, Yes };

// The way in which selective recompute makes the output again in backward. No: the output is kept. Apply: it is
// computed from the input and the statistics. Run: the op runs again, and keeps nothing but its input.
enum class Recomputed { No, Apply, Run };

// Yes: forward or backward writes over the input, which no other op may read.
enum class OverwritesInput { No, Yes };

struct OpRow {
  OpKind kind;
  // The floating-point operations of forward. A multiply-add counts as two.
  Terms (*flops)(const OpAt& at);
  Traffic (*traffic)(const OpAt& at);
  KeepsInput keeps;
  Terms (*copies)(const OpAt& at);      // elements of its own that it keeps for backward
  Terms (*statistics)(const OpAt& at);  // float32 numbers that it keeps for backward
  Recomputed output;
  OverwritesInput overwrites;
  // The letters that each rank needs whole: with a part of one, the op computes something else. Ranks may split all
  // other letters.
  std::string (*whole)(const OpAt& at);
};

const OpRow& row_of(OpKind kind);

// Returns one sentence for each op that needs a letter whole which ranks split.
std::vector<std::string> problems_of_split(const BlockGraph& block, std::string_view split_letters);

// Returns the operations of all ops of the block in forward.
Terms forward_flops(const BlockGraph& block);

}  // namespace braid::model
