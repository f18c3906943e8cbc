// Activation recompute of one stage: its blocks are run in segments, of which forward keeps the graph or only the
// input. Backward goes from the last segment to the first and first runs those without a graph once more. Autograd
// never calls itself: a graph ends at its segment's borders, and this class hands the gradient on.
//
//   forward    x0 -> [ 0 1 ] -> x2 -> [ 2 3 ] -> x4 -> [ head ] -> loss        kept: x0, x2 and the graph of the head
//   backward   head; [ 2 3 ] again from x2, and back; [ 0 1 ] again from x0, and back
//
// A second run gives the bits of the first: blocks depend on input, parameters and microbatch alone, masks included. So
// parameters must be the same at both. Of what blocks hand in beside their output (nn/block.h), that of the first
// run is reported; roots of a backward are the losses of the run whose graph it goes through.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "braid/nn/block.h"
#include "braid/param/memory_account.h"
#include "braid/spec/recompute.h"

namespace braid::nn {

// Recompute: which blocks of a stage are run again together in backward. It counts blocks and runs none.
//
//   every:2 on a stage with both ends     [embedding 1 2] [3 4] [5] [head]      the head's graph is kept

// Blocks [begin, end) of a stage, in its own count.
struct Segment {
  enum class Kept {
    Graph,  // forward leaves a graph for backward
    Input,  // forward leaves the input, from which backward makes the graph
  };
  int begin = 0, end = 0;
  Kept kept = Kept::Graph;

  bool operator==(const Segment&) const = default;
};

struct StageBlocks {
  int embedding = 0;  // 1: the first block is the embedding; it goes with the blocks behind it
  int middle = 0;     // what memory.recompute counts
  int head = 0;  // 1: the last block is the head; it is never run again, for its forward may write weight gradients
};

// In order, without gaps, none empty.
std::vector<Segment> plan_segments(const spec::Recompute& policy, const StageBlocks& blocks);

// The same with a segment of its own for every block whose graph is kept: backward goes block by block then.
std::vector<Segment> block_by_block(const std::vector<Segment>& plan);

// Returns the tensors that layers keep in those graphs.
Keep kept_by_layers(const spec::Recompute& policy);

// Called before a block runs and after its parameters have been used. In backward `before` is called for all blocks of
// a segment, from the last, before any of them runs, and `after` for all of them at the end. May be empty.
struct BlockHooks {
  std::function<void(int block, param::Phase phase)> before, after;
};

// When a backward's weight gradients are computed.
enum class WeightPass {
  Later,   // they wait on the queue, which holds what they need
  AtOnce,  // inside the layer's backward: inputs and output gradients of one layer at a time are held for them
};

// The state of one microbatch on one stage from its forward to its backward. Destroying it frees that memory.
class Passage {
 public:
  explicit Passage(Microbatch microbatch = {}) : microbatch_(std::move(microbatch)) {}

  // Returns the auxiliary losses and counts that blocks contributed in the forward, without graphs. Empty the second
  // time.
  Auxiliaries take_auxiliaries() { return std::exchange(handed_in_, {}); }

 private:
  friend class Segments;
  struct Ends {
    at::Tensor input, output;           // output: with a graph, undefined while there is none
    std::vector<AuxiliaryLoss> losses;  // of the same graph
  };
  Microbatch microbatch_;
  std::vector<Ends> ends_;  // by segment
  Auxiliaries handed_in_;
};

class Segments {
 public:
  using Blocks = std::vector<std::unique_ptr<Block>>;

  // `blocks`, of which `plan` covers each, and `weight_grads`, on which they leave gradients, outlive this.
  Segments(const Blocks& blocks, std::vector<Segment> plan, param::WeightGradQueue& weight_grads);

  void set_hooks(BlockHooks hooks) { hooks_ = std::move(hooks); }

  // The stage's output for a fresh passage; x_btc is undefined where the first block makes it from tokens. With
  // gradients disabled nothing is kept and no backward may follow. The output has a graph only where the last segment
  // keeps it; backward needs no part of it from the caller.
  at::Tensor forward(const at::Tensor& x_btc, Passage& passage) const;

  // Runs the last segment without a graph again, ahead of backward; nothing happens a second time.
  void recompute(Passage& passage) const;

  // dy: the gradient of forward's output; that of an auxiliary loss is its coefficient times the microbatch's
  // loss_gradient. Returns the gradient of forward's input, undefined where that is.
  at::Tensor backward(Passage passage, at::Tensor dy, WeightPass weights) const;

 private:
  // Calls the hooks of a forward around each block; run_within() calls none.
  at::Tensor run(const Segment& segment, at::Tensor x_btc, const Microbatch& microbatch) const;
  at::Tensor run_within(const Segment& segment, at::Tensor x_btc, const Microbatch& microbatch) const;
  void run_first(size_t segment, Passage& passage, at::Tensor& x_btc) const;
  void run_again(size_t segment, Passage& passage) const;
  static void backward_from(const Passage::Ends& ends, const Microbatch& microbatch, const at::Tensor& dy);
  void before_backward(const Segment& segment) const;
  void after_backward(const Segment& segment) const;

  const Blocks& blocks_;
  std::vector<Segment> plan_;
  param::WeightGradQueue& weight_grads_;
  BlockHooks hooks_;
};

}  // namespace braid::nn
