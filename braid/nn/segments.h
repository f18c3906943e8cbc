// Activation recompute of one stage (activation checkpointing). The blocks of the stage run in segments, and forward
// keeps either a segment's graph or only its input. Backward goes from the last segment to the first, and recomputes
// the graph of a segment that kept only its input. Autograd never calls itself: each graph ends at its segment's
// borders, and Segments passes the gradient from one to the next.
//
//   forward    x0 -> [ 0 1 ] -> x2 -> [ 2 3 ] -> x4 -> [ head ] -> loss        kept: x0, x2 and the graph of the head
//   backward   head; [ 2 3 ] recomputed from x2, its backward; [ 0 1 ] recomputed from x0, its backward
//
// A recomputation gives the bits of the forward, because blocks depend only on input, parameters and microbatch,
// dropout masks included. So the parameters must be the same in both. The auxiliary losses and counts (nn/block.h)
// reported for a microbatch are those of the forward. The losses that seed a backward are those of the run whose graph
// it uses.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "braid/nn/block.h"
#include "braid/param/memory_account.h"
#include "braid/param/saved_graph.h"
#include "braid/param/swap_space.h"
#include "braid/spec/recompute.h"

namespace braid::nn {

// The blocks [begin, end) of a stage that backward recomputes together, numbered within the stage. Example:
//
//   every:2 on a stage with both ends     [embedding 1 2] [3 4] [5] [head]      the head's graph is kept
//   blocks:0-1+3 on the same stage        [embedding 1] [2] [3] [4] [5 head]    the graphs of 3 and of 5 are kept too
struct Segment {
  enum class Kept {
    Graph,  // forward keeps the graph for backward
    Input,  // forward keeps the input, from which backward recomputes the graph
  };
  int begin = 0, end = 0;
  Kept kept = Kept::Graph;

  bool operator==(const Segment&) const = default;
};

struct StageBlocks {
  int embedding = 0;  // 1: the first block is the embedding, in one segment with the blocks that follow
  int middle = 0;     // number of blocks in between, which memory.recompute counts
  int head = 0;  // 1: the last block is the head; it is never recomputed, as its forward may write weight gradients
};

// Returns the segments in order, without gaps. None is empty.
std::vector<Segment> plan_segments(const spec::Recompute& policy, const StageBlocks& blocks);

// Returns `plan` with a segment of its own for every block whose graph is kept, so that backward runs block by block.
std::vector<Segment> block_by_block(const std::vector<Segment>& plan);

// The block of a stage in which backward ends: the first with a trained parameter, if nothing before the stage is
// trained. kToInput: backward goes through the whole stage and computes the gradient of its input. Blocks before that
// one run without gradients, and nothing of them is kept.
inline constexpr int kToInput = -1;

// Returns `plan` with a border before the block in which backward ends, so that no block before it is recomputed.
std::vector<Segment> cut_before(const std::vector<Segment>& plan, int last_in_backward);

// Returns which tensors layers keep in those graphs.
Keep kept_by_layers(const spec::Recompute& policy);

// Functions called before a block runs and after its parameters have been used; either may be empty. In backward,
// `before` is called for all blocks of a segment, last block first, before any of them runs. `after` is called for all
// of them at the end.
struct BlockHooks {
  std::function<void(int block, param::Phase phase)> before, after;
};

// The time at which a backward's weight gradients are computed.
enum class WeightPass {
  Later,   // later, by running the queue, which holds their inputs until then
  AtOnce,  // inside the layer's backward, so that inputs and output gradients of only one layer are held at a time
};

// The state of one microbatch on one stage from its forward to its backward. The destructor frees that memory.
class Passage {
 public:
  explicit Passage(Microbatch microbatch = {}) : microbatch_(std::move(microbatch)) {}

  // Returns the auxiliary losses and counts that blocks contributed in the forward, without graphs. A second call
  // returns none.
  Auxiliaries take_auxiliaries() { return std::exchange(handed_in_, {}); }

 private:
  friend class Segments;
  struct Ends {
    at::Tensor input, output;                  // output: has a graph; undefined while there is no graph
    std::vector<AuxiliaryLoss> losses;         // auxiliary losses of the same graph
    std::unique_ptr<param::SavedGraph> moved;  // null: all of it is in memory
  };
  Microbatch microbatch_;
  std::vector<Ends> ends_;  // by segment
  Auxiliaries handed_in_;
};

class Segments {
 public:
  using Blocks = std::vector<std::unique_ptr<Block>>;

  // REQUIRES: `plan` covers all of `blocks`; `blocks` and `weight_grads`, the queue on which the blocks leave
  // gradients, outlive this. `last_in_backward` is as in cut_before().
  Segments(const Blocks& blocks, std::vector<Segment> plan, param::WeightGradQueue& weight_grads,
           int last_in_backward = kToInput);

  void set_hooks(BlockHooks hooks) { hooks_ = std::move(hooks); }
  // From now on, what forward keeps of segments that end by block `end` is in `space` until backward. Backward reads a
  // segment while the one after it runs. Stages of a rank share a space: one that keeps nothing there (`end` is 0)
  // frees the copies of the others, too.
  void keep_in(std::shared_ptr<param::SwapSpace> space, int end) {
    space_ = std::move(space);
    end_in_space_ = end;
  }

  // Returns the stage's output. `passage` is new; x_btc is undefined if the first block computes it from tokens. With
  // gradients disabled nothing is kept, and no backward may follow. The output has a graph only if the last segment
  // keeps its graph; backward needs no part of it from the caller. Throws RunError if the disk of keep_in() fails, as
  // the other methods do.
  at::Tensor forward(const at::Tensor& x_btc, Passage& passage) const;

  // Recomputes, ahead of backward, the last of the segments that keep only their input. A second call does nothing.
  void recompute(Passage& passage) const;

  // Returns the gradient of forward's input, undefined if that input was or if backward ends before it. dy: the
  // gradient of forward's output. The gradient of an auxiliary loss is its coefficient times the microbatch's
  // loss_gradient.
  at::Tensor backward(Passage passage, at::Tensor dy, WeightPass weights) const;

 private:
  // Calls the forward hooks around each block; run_within() calls no hooks.
  at::Tensor run(const Segment& segment, at::Tensor x_btc, const Microbatch& microbatch) const;
  at::Tensor run_within(const Segment& segment, at::Tensor x_btc, const Microbatch& microbatch) const;
  void run_first(size_t segment, Passage& passage, at::Tensor& x_btc) const;
  void run_again(size_t segment, Passage& passage) const;
  bool keeps_in_space(size_t segment) const {
    return space_ && has_backward(segment) && plan_[segment].end <= end_in_space_;
  }
  static void start_in(const Passage& passage, size_t segment);
  static void backward_from(const Passage::Ends& ends, const Microbatch& microbatch, const at::Tensor& dy);
  bool has_backward(size_t segment) const { return plan_[segment].end > last_in_backward_; }
  bool passes_gradient(size_t segment) const { return plan_[segment].begin > last_in_backward_; }
  void before_backward(const Segment& segment) const;
  void after_backward(const Segment& segment) const;

  const Blocks& blocks_;
  std::vector<Segment> plan_;
  param::WeightGradQueue& weight_grads_;
  int last_in_backward_;
  BlockHooks hooks_;
  std::shared_ptr<param::SwapSpace> space_;  // null: memory
  int end_in_space_ = 0;
};

}  // namespace braid::nn
