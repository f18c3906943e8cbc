// Activation recompute. A segment's input is a leaf of the segment's graph, and tensors between segments have no graph.
#include "braid/nn/segments.h"

#include <ATen/ops/full_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "braid/base/errors.h"
#include "braid/param/memory_account.h"

namespace braid::nn {

std::vector<Segment> plan_segments(const spec::Recompute& policy, const StageBlocks& blocks) {
  const int before_head = blocks.embedding + blocks.middle, all = before_head + blocks.head;
  check(all > 0, "a stage has a block");
  std::vector<Segment> segments;
  const auto add_graph_up_to = [&](int end) {
    const int begin = segments.empty() ? 0 : segments.back().end;
    if (end > begin) segments.push_back({begin, end, Segment::Kept::Graph});
  };
  for (const spec::RecomputedBlocks& range : spec::recomputed_segments(policy, blocks.middle)) {
    check(range.segment >= 1, "a segment has a block");
    if (range.begin > 0) add_graph_up_to(blocks.embedding + range.begin);
    const int begin = segments.empty() ? 0 : segments.back().end;
    segments.push_back({begin, blocks.embedding + range.end, Segment::Kept::Input});
  }
  const bool ends = policy.keeps == spec::Recompute::Keeps::SegmentInputs && blocks.middle == 0 && before_head > 0;
  if (ends) segments.push_back({0, before_head, Segment::Kept::Input});
  add_graph_up_to(all);
  return segments;
}

std::vector<Segment> block_by_block(const std::vector<Segment>& plan) {
  std::vector<Segment> all;
  for (const Segment& segment : plan) {
    if (segment.kept == Segment::Kept::Input) {
      all.push_back(segment);
      continue;
    }
    for (int block = segment.begin; block < segment.end; ++block) all.push_back({block, block + 1, segment.kept});
  }
  return all;
}

std::vector<Segment> cut_before(const std::vector<Segment>& plan, int last_in_backward) {
  std::vector<Segment> all;
  for (const Segment& segment : plan) {
    all.push_back(segment);
    const bool cuts = segment.begin < last_in_backward && last_in_backward < segment.end;
    if (!cuts || segment.kept == Segment::Kept::Graph) continue;
    all.back().end = last_in_backward;
    all.push_back({last_in_backward, segment.end, segment.kept});
  }
  return all;
}

Keep kept_by_layers(const spec::Recompute& policy) {
  return policy.keeps == spec::Recompute::Keeps::Selected ? Keep::Selected : Keep::Everything;
}

namespace {

// Returns the microbatch for one run, in which blocks add their losses and counts to `auxiliaries`.
Microbatch handing_in(Microbatch microbatch, Auxiliaries& auxiliaries) {
  microbatch.auxiliaries = &auxiliaries;
  return microbatch;
}

// Adds a segment's losses and counts to those of the passage. The values are detached, because they outlive the graph.
void report(const Auxiliaries& of_segment, Auxiliaries& all) {
  for (const AuxiliaryLoss& loss : of_segment.losses) {
    all.losses.push_back({loss.name, loss.value.detach(), loss.coefficient});
  }
  for (const AuxiliaryCount& count : of_segment.counts) all.counts.push_back({count.name, count.numbers.detach()});
}

// Returns what moves to disk of a segment with this input, which may have come from another rank.
param::SavedGraph::Moves moving(const at::Tensor& input) {
  const c10::StorageImpl* const of_input = input.defined() ? input.storage().unsafeGetStorageImpl() : nullptr;
  return [of_input](const c10::Storage& memory) {
    return memory.unsafeGetStorageImpl() == of_input ||
           param::category_of(memory.data_ptr()) == param::MemoryCategory::Activations;
  };
}

}  // namespace

Segments::Segments(const Blocks& blocks, std::vector<Segment> plan, param::WeightGradQueue& weight_grads,
                   int last_in_backward)
    : blocks_(blocks), plan_(std::move(plan)), weight_grads_(weight_grads), last_in_backward_(last_in_backward) {
  int end = 0;
  for (const Segment& segment : plan_) {
    check(segment.begin == end && segment.end > end, "segments follow each other");
    end = segment.end;
  }
  check(end == static_cast<int>(blocks_.size()), "segments cover the stage");
}

at::Tensor Segments::run(const Segment& segment, at::Tensor x_btc, const Microbatch& microbatch) const {
  for (int block = segment.begin; block < segment.end; ++block) {
    if (hooks_.before) hooks_.before(block, param::Phase::Forward);
    x_btc = blocks_[static_cast<size_t>(block)]->forward(x_btc, microbatch);
    if (hooks_.after) hooks_.after(block, param::Phase::Forward);
  }
  return x_btc;
}

at::Tensor Segments::run_within(const Segment& segment, at::Tensor x_btc, const Microbatch& microbatch) const {
  for (int block = segment.begin; block < segment.end; ++block) {
    x_btc = blocks_[static_cast<size_t>(block)]->forward(x_btc, microbatch);
  }
  return x_btc;
}

void Segments::before_backward(const Segment& segment) const {
  for (int block = segment.end; hooks_.before && block-- > segment.begin;) hooks_.before(block, param::Phase::Backward);
}

void Segments::after_backward(const Segment& segment) const {
  for (int block = segment.end; hooks_.after && block-- > segment.begin;) hooks_.after(block, param::Phase::Backward);
}

void Segments::run_again(size_t segment, Passage& passage) const {
  const c10::AutoGradMode grad(true);
  Passage::Ends& ends = passage.ends_[segment];
  if (ends.moved && ends.moved->has_input()) ends.input = ends.moved->input();
  if (ends.input.defined()) ends.input.requires_grad_(passes_gradient(segment));
  Auxiliaries handed_in;
  ends.output = run_within(plan_[segment], ends.input, handing_in(passage.microbatch_, handed_in));
  ends.losses = std::move(handed_in.losses);
}

// Runs the segment's forward on x_btc, and replaces x_btc by the segment's output.
void Segments::run_first(size_t segment, Passage& passage, at::Tensor& x_btc) const {
  const bool keeps_graph = plan_[segment].kept == Segment::Kept::Graph && has_backward(segment);
  const c10::AutoGradMode grad(keeps_graph);
  Passage::Ends& ends = passage.ends_.emplace_back();
  if (x_btc.defined() && has_backward(segment)) ends.input = x_btc = x_btc.detach();
  if (keeps_graph && ends.input.defined()) ends.input.requires_grad_(passes_gradient(segment));
  std::optional<param::SavedGraph::Scope> saving;
  if (space_) space_->next_part();
  if (keeps_in_space(segment)) {
    ends.moved = std::make_unique<param::SavedGraph>(space_, moving(ends.input));
    if (keeps_graph) saving.emplace(*ends.moved);
    if (keeps_graph && x_btc.defined())
      x_btc = x_btc.view_as(x_btc);  // a block may hold it longer than the leaf is whole
    if (!keeps_graph && ends.input.defined()) ends.moved->move_input(ends.input);
  }
  Auxiliaries handed_in;
  x_btc = run(plan_[segment], std::move(x_btc), handing_in(passage.microbatch_, handed_in));
  report(handed_in, passage.handed_in_);
  if (!keeps_graph) return;
  ends.output = ends.moved ? param::root_like(x_btc) : x_btc;
  if (ends.moved && ends.input.defined()) param::free_leaf(ends.input);
  ends.losses = std::move(handed_in.losses);
}

at::Tensor Segments::forward(const at::Tensor& x_btc, Passage& passage) const {
  const param::MemoryScope scope(param::MemoryCategory::Activations);
  if (!c10::GradMode::is_enabled()) return run({0, static_cast<int>(blocks_.size())}, x_btc, passage.microbatch_);
  check(passage.ends_.empty(), "a microbatch passes a stage once");
  at::Tensor x = x_btc;
  for (size_t i = 0; i < plan_.size(); ++i) run_first(i, passage, x);
  return x;
}

void Segments::start_in(const Passage& passage, size_t segment) {
  if (const auto& moved = passage.ends_[segment].moved) moved->start_in();
}

void Segments::recompute(Passage& passage) const {
  const param::MemoryScope scope(param::MemoryCategory::Activations);
  check(!passage.ends_.empty(), "what is run again has passed");
  for (size_t i = plan_.size(); i-- > 0;) {
    if (!has_backward(i)) return;
    if (plan_[i].kept == Segment::Kept::Graph) continue;
    if (passage.ends_[i].output.defined()) return;
    start_in(passage, i);
    before_backward(plan_[i]);
    run_again(i, passage);
    return after_backward(plan_[i]);
  }
}

void Segments::backward_from(const Passage::Ends& ends, const Microbatch& microbatch, const at::Tensor& dy) {
  std::vector<at::Tensor> roots{ends.output}, seeds{dy};
  for (const AuxiliaryLoss& loss : ends.losses) {
    if (!loss.value.requires_grad()) continue;
    roots.push_back(loss.value);
    seeds.push_back(at::full_like(loss.value, loss.coefficient * microbatch.loss_gradient));
  }
  torch::autograd::backward(roots, seeds);
}

at::Tensor Segments::backward(Passage passage, at::Tensor dy, WeightPass weights) const {
  const param::MemoryScope scope(param::MemoryCategory::Activations);
  check(!passage.ends_.empty(), "backward of a microbatch follows its forward, once");
  std::optional<param::WeightGradQueue::AtOnce> at_once;
  if (weights == WeightPass::AtOnce) at_once.emplace(weight_grads_);
  while (!passage.ends_.empty()) {
    const size_t last = passage.ends_.size() - 1;
    if (!has_backward(last)) return {};
    before_backward(plan_[last]);
    start_in(passage, last);
    if (last > 0) start_in(passage, last - 1);
    if (space_) space_->next_part();
    if (!passage.ends_[last].output.defined()) run_again(last, passage);
    Passage::Ends ends = std::move(passage.ends_[last]);
    passage.ends_.pop_back();
    backward_from(ends, passage.microbatch_, dy);
    check(!weight_grads_.defers(), "a reduction runs the weight gradients that wait for it");
    after_backward(plan_[last]);
    dy = ends.input.defined() ? ends.input.grad() : at::Tensor();
  }
  return dy;
}

}  // namespace braid::nn
