// The ops of a model as a list: shapes, work and memory on one rank, and the collectives between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/layout/account.h"
#include "braid/mesh/device_mesh.h"

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
  std::vector<std::string> frozen;  // of its parameters, those that are not trained
  double flops = 0;                 // of forward
  double kept_elements = 0;         // kept for backward: values that no op before it keeps, and copies of its own
  double kept_floats = 0;           // float32 numbers kept for backward
};

// A collective of the ranks that share a layer, for a microbatch. Those of backward are of the gradients that trained
// parameters need (model/trained.h).
//
//   tensor    all-reduce    in forward of an op's output, in backward of the gradient of an input or a parameter
//                           (tensor_sums.h). If sums are Joined, that of an input is summed once for all ops
//                           that read it.
//             all-gather    under sequence parallelism (tensor_sums.h), of the input of an op that reads all tokens, in
//                           forward and, if a product keeps it, in backward; in backward of the gradient of a sum
//             reduce-scatter  there, of an op's output in forward and of the gradient of a gathered input in backward
//   context   all-to-all    of queries, keys and values to some of the heads, and of the outputs back
//             send-receive  of queries, keys and values to the places around the ring, and of the outputs back; of keys
//                           and values around the ring, in backward of their gradients too
//             all-gather    in place of the ring, of the keys and values of all tokens; in backward once more, and a
//                           reduce-scatter of their gradients, which sends as much
//   expert    all-to-all    of the tokens that go to experts and come back
//
// Those inside the loss are not listed. Those over expert are planned and not executed.
struct ListedCollective {
  enum class Kind { AllReduce, AllGather, AllToAll, ReduceScatter, SendReceive } kind;
  enum class Pass { Forward, Backward } pass;
  mesh::Axis axis = mesh::Axis::Tensor;
  size_t op;              // number in Listing::ops
  std::string block;      // that of the op
  std::string param;      // the parameter, or the first of the op; without one, the op's kind
  int times = 1;          // that it is called
  double elements = 0;    // of a call, on this rank; of an all-gather or reduce-scatter those of all ranks
  bool in_float = false;  // in float32 if the type of activations is narrower
};
constexpr auto words(ListedCollective::Kind) {
  return std::to_array<std::string_view>({"all-reduce", "all-gather", "all-to-all", "reduce-scatter", "send-receive"});
}
constexpr auto words(ListedCollective::Pass) { return std::to_array<std::string_view>({"forward", "backward"}); }

struct Listing {
  std::vector<ListedOp> ops;
  std::vector<ListedCollective> collectives;
};

// Lists the embedding, the first layer of each kind, and the head. `picked`: as in account_of().
Listing listing_of(const ModelSpec& spec, const SharingRanks& ranks, double picked = 1);
Listing listing_of(const ModelSpec& spec, const model::ModelGraph& graph, const SharingRanks& ranks, double picked = 1);

}  // namespace braid::layout
