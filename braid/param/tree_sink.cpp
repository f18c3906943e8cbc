// The sink that sums gradients in a balanced binary tree over microbatches. The tree, not the order of arrival,
// determines the bits.
//
//   level 2          0123          A node is summed as soon as both children are complete. So if microbatches arrive in
//   level 1      01        23      order, at most one node per level waits, beside the leaf being written.
//   level 0    0    1    2    3
#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>

#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/param/grad_ledger.h"
#include "braid/param/grad_sink.h"
#include "braid/param/memory_account.h"

namespace braid::param {
namespace {

// The tree of one slice. The first leaf is written into the slice itself. The sum of two nodes is written into the
// slice if one of them is there, so the root ends in the slice without a copy. Addition is commutative, so it does not
// matter which child's memory takes the sum.
class SumTree {
 public:
  void begin_step(const at::Tensor& slice, int num_leaves) {
    slice_ = slice;
    num_leaves_ = num_leaves;
    slice_taken_ = false;
    for (auto& [node, sum] : nodes_) release(sum);
    nodes_.clear();
  }

  at::Tensor leaf(int micro) {
    const at::Tensor target = slice_taken_ ? buffer() : slice_;
    slice_taken_ = true;
    nodes_[{0, micro}] = target;
    return target;
  }

  void close(int micro) {
    Node node{0, micro};
    at::Tensor sum = std::exchange(nodes_.at(node), {});
    nodes_.erase(node);
    while (num_leaves_ >> node.first > 1) {
      const auto sibling = nodes_.find({node.first, node.second ^ 1});
      if (sibling == nodes_.end()) break;
      sum = combine(sum, sibling->second, node.second & 1);
      nodes_.erase(sibling);
      node = {node.first + 1, node.second / 2};
    }
    if (num_leaves_ >> node.first > 1) nodes_[node] = sum;
  }

 private:
  using Node = std::pair<int, int>;  // level, index within the level

  at::Tensor combine(const at::Tensor& sum, const at::Tensor& sibling, int is_right) {
    const at::Tensor& left = is_right ? sibling : sum;
    const at::Tensor& right = is_right ? sum : sibling;
    const bool right_keeps = right.is_same(slice_);
    at::Tensor kept = right_keeps ? right : left;
    at::add_out(kept, left, right);
    release(right_keeps ? left : right);
    return kept;
  }

  at::Tensor buffer() {
    if (free_.empty()) {
      const MemoryScope scope(MemoryCategory::Gradients);
      return at::empty_like(slice_);
    }
    at::Tensor taken = std::move(free_.back());
    free_.pop_back();
    return taken;
  }

  void release(const at::Tensor& sum) {
    if (!sum.is_same(slice_)) free_.push_back(sum);
  }

  at::Tensor slice_;
  int num_leaves_ = 0;
  bool slice_taken_ = false;
  std::map<Node, at::Tensor> nodes_;  // open leaves and sums that wait for their sibling
  std::vector<at::Tensor> free_;
};

class TreeSink final : public GradSink {
 public:
  explicit TreeSink(ParamStore& store) : store_(store), ledger_(store), trees_(ledger_.num_slices()) {
    for (const Parameter& param : store.params()) {
      check(store.reduction() == Reduction::Reproducible || param.use_grads.size() == 1,
            "each use of a tied parameter sums into a slice of its own");
    }
  }

  void begin_step(int num_microbatches) override {
    check(std::has_single_bit(static_cast<unsigned>(num_microbatches)), "a balanced tree has 2^k microbatches");
    ledger_.begin_step(num_microbatches);
    for (const Parameter& param : store_.params()) {
      for (size_t place = 0; place < param.use_grads.size(); ++place) {
        trees_[ledger_.slice(param, place)].begin_step(param.use_grads[place].slice, num_microbatches);
      }
    }
  }

  GradSlot open(const Parameter& param, int use, int micro) override {
    const int place = ledger_.open(param, use, micro);
    return {trees_[ledger_.slice(param, place)].leaf(micro), 0};
  }

  void close(const Parameter& param, int use, int micro) override {
    const bool last = ledger_.close(param, use, micro);
    trees_[ledger_.slice(param, ledger_.place(param, use))].close(micro);
    if (last && on_ready) on_ready(param);
  }

 private:
  const ParamStore& store_;
  GradLedger ledger_;
  std::vector<SumTree> trees_;  // by slice
};

}  // namespace

std::unique_ptr<GradSink> tree_sink(ParamStore& store) { return std::make_unique<TreeSink>(store); }

}  // namespace braid::param
