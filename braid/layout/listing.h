// The ops of a model as a list: shapes, work and memory on one rank, and the sums over tensor ranks between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/layout/account.h"

namespace braid::layout {

// An op on one rank, for a microbatch.
struct ListedOp {
  std::string name;            // "blocks.0.2", unique
  std::string block;           // "embedding", "blocks.0", "head"
  double count;                // number of alike blocks, for which the block stands
  std::string kind, rule;      // "linear", "btc,[kmd|kd|kd]c->bt[kmd|kd|kd]"
  std::vector<int64_t> shape;  // of the output on the rank
  std::string split;           // letters of its rule that the tensor axis splits: "kv"
  std::vector<size_t> reads;   // the ops in the list whose outputs it reads
  std::vector<std::string> parameters;
  double flops = 0;          // of forward
  double kept_elements = 0;  // kept for backward: values that no op before it keeps, and copies of its own
  double kept_floats = 0;    // float32 numbers kept for backward
};

// A sum over the tensor ranks (tensor_sums.h). In forward it is of an op's output, in backward of the gradient of an
// input or a parameter. The gradient of an input is summed once for all ops that read it. Sums inside the loss are not
// listed.
struct ListedSum {
  size_t op;                 // number in Listing::ops
  std::string block, param;  // the parameter, or the first of the op; without one, the op's kind
  enum class Pass { Forward, Backward } pass;
  double elements = 0;
};
constexpr auto words(ListedSum::Pass) { return std::to_array<std::string_view>({"forward", "backward"}); }

struct Listing {
  std::vector<ListedOp> ops;
  std::vector<ListedSum> sums;  // empty on one tensor rank
};

Listing listing_of(const ModelSpec& spec, const SharingRanks& ranks);
Listing listing_of(const ModelSpec& spec, const model::ModelGraph& graph, const SharingRanks& ranks);

}  // namespace braid::layout
