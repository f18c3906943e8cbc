// A model as data: blocks, their ops in order, and the values that ops read and make. Families make it
// (families.h). Parameter lists and counts are read from it.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/word.h"
#include "braid/model/dims.h"
#include "braid/model/param_traits.h"

namespace braid::model {

// The kinds of ops. A linear map and the loss sum over the last letter that their operands share.
enum class OpKind {
  Lookup,      // bt,vc->btc: rows of a table of tokens
  Positions,   // btc,pc->btc: adds a row for each place in the sequence
  TokenTypes,  // btc,gc->btc: adds the row of the first type, since all tokens are of one type
  Dropout,
  LayerNorm,
  RmsNorm,
  HeadNorm,  // RMSNorm of each head of queries and keys
  Linear,    // a matrix product; with rows r, each row meets the matrix of its expert
  Bias,
  Rotary,     // turns queries and keys by their positions
  Attention,  // bt[kmd|kd|kd]->bt(kmd)
  Gelu,       // tanh form
  GeluErf,    // exact form
  SwiGlu,     // [f|f]->f
  GeGlu,      // [f|f]->f, tanh form
  Residual,   // adds the branch to the hidden state
  Route,      // chooses experts for each token from the router's scores
  Dispatch,   // btc->rc: copies tokens to their experts' rows
  Combine,    // rc->btc: sums the rows of each token
  Opaque,     // a function of the program's own (nn/opaque.h)
  PickRows,   // btc->bjc: copies the rows of masked tokens
  Loss,       // btc,vc->: logits, perhaps with a bias, and cross-entropy
};
constexpr auto words(OpKind) {
  return std::to_array<std::string_view>({"lookup",    "positions", "token types", "dropout",  "layer norm", "rms norm",
                                          "head norm", "linear",    "bias",        "rotary",   "attention",  "gelu",
                                          "gelu erf",  "swiglu",    "geglu",       "residual", "route",      "dispatch",
                                          "combine",   "opaque",    "pick rows",   "loss"});
}

// The tokens of its sequence that a token attends to. Earlier: itself and those before it.
enum class Sees { Earlier, All };

// A parameter of an op. `name` is that in the block: "attention.qkv.weight".
struct Param {
  std::string name;
  Dims dims;
  Init init;
  WeightDecay decay = WeightDecay::No;
  LinearMap linear = LinearMap::No;
  Trained trained = Trained::Yes;
  bool operator==(const Param&) const = default;
};

struct OpRow;
struct OpaqueFunction;  // nn/opaque.h

// Ops refer to values by their number in BlockGraph::values.
struct Op {
  OpKind kind;
  const OpRow* row;  // its costs: row_of(kind) of op_table.h
  std::vector<int> in;
  int out = 0;
  std::vector<Param> params;
  Sees sees = Sees::Earlier;  // attention
  int window = 0;             // attention: number of newest tokens that a token attends to, itself included; 0: all
  double mask = 0;            // attention with a window: elements of the mask that its runs of tokens share
  std::shared_ptr<const OpaqueFunction> function = nullptr;  // of an opaque op
  double tokens_seen = 0;  // attention: the tokens that a token attends to, on average of a full sequence
  double cap = 0;          // attention, loss: scores or logits x become cap tanh(x / cap); 0: they stay
  double scale = 0;        // attention: factor of scores, 0: 1 / sqrt(d); lookup: factor of rows, 0: 1
  double offset = 0;       // rms norm: added to its weight
  bool operator==(const Op&) const = default;
};

// Unneeded: nothing that is trained comes before the value.
enum class Gradient { Needed, Unneeded };

// A block. Value 0 is its input and the last op makes its output.
struct BlockGraph {
  std::vector<Dims> values;
  std::vector<Op> ops;
  std::vector<int> cuts;  // numbers of the ops before which the model may be cut
  Gradient of_input = Gradient::Needed;

  // Returns the ops between two cuts; part 0 ends at the first.
  std::span<const Op> part(size_t number) const;
  bool operator==(const BlockGraph&) const = default;
};

// A model: embedding, layers, head. Layers that are alike share a kind. The first kind is the embedding and the last is
// the head.
struct ModelGraph {
  std::vector<BlockGraph> kinds;
  std::vector<int> blocks;  // the kind of each block

  // Returns the number of blocks of a kind.
  double count_of(size_t kind) const { return std::ranges::count(blocks, static_cast<int>(kind)); }
  const BlockGraph& block(size_t number) const { return kinds[blocks[number]]; }
  // Returns the first block of each kind, by its number in the model.
  std::vector<size_t> first_blocks() const;
  std::span<const BlockGraph> layer_kinds() const { return std::span(kinds).subspan(1, kinds.size() - 2); }
};

// Returns "embedding", "blocks.0" .., "head".
std::string block_name(const ModelGraph& graph, size_t block);
// Returns the name of an op of graph.block(block) in messages: "blocks.3 linear mlp.down", "blocks.3 residual 2".
std::string op_name(const ModelGraph& graph, size_t block, const Op& op);
// Returns the first word of the names of the part's linear maps: "attention", "mlp". "" if it has none.
std::string part_name(const BlockGraph& block, size_t part);
// Returns the name of a parameter in the whole model: "blocks.3.ln_1.weight", "wte.weight".
std::string param_name(const ModelGraph& graph, size_t block, const Param& param);

// Returns true if an op writes over the value, or over what dropout makes of it, which may be the value itself.
bool is_overwritten(const BlockGraph& block, int value);

// Returns one sentence for each mistake: an op that reads a value before it is made, a value that no op reads, a value
// that an op overwrites and another one reads or keeps, a GELU without a bias before it, a cut at which the hidden
// state is not the only value, a name that a block has twice, and operands whose dims do not fit. Dims of lookups,
// opaque ops and ops of experts are not checked. Empty if there is no mistake.
std::vector<std::string> problems_of(const BlockGraph& block);

// Returns the dims of an op's operands and result: "btc,[kmd|kd|kd]c->bt[kmd|kd|kd]".
std::string rule_text(const BlockGraph& block, const Op& op);
// Returns a line for each op: "linear btc,[kmd|kd|kd]c->bt[kmd|kd|kd] attention.qkv.weight".
std::string text_of(const BlockGraph& block);

}  // namespace braid::model
