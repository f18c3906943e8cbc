// Reads a chain off the bytes of a stage's tensors.
#include "braid/plan/stage_chain.h"

#include <algorithm>

#include "braid/plan/pass_bytes.h"
#include "braid/spec/partition.h"

namespace braid::plan {
namespace {

// Copies of tensors begin at blocks of the disk and fill them. Two segments have about as many tensors as this.
constexpr double kBlockOfDisk = 4096, kTensors = 48;

}  // namespace

RecomputeChain stage_chain(const ActivationBytes& x, const StageLoad& load) {
  RecomputeChain chain;
  const bool selected = load.recompute.keeps == spec::Recompute::Keeps::Selected;
  const auto is_skipped = [&](const PlacedBlock& block) { return x.parts[block.first].skipped > 0; };
  const auto first = std::ranges::find_if_not(load.order, is_skipped);
  chain.first = static_cast<int>(first - load.order.begin());
  const bool embedding = load.embedding && x.embedding_runs_backward;
  for (auto block = first; block != load.order.end(); ++block) {
    ChainBlock& own = chain.blocks.emplace_back();
    for (size_t part = block->first; part < block->last; ++part) {
      own.kept += selected ? x.parts[part].selected : x.parts[part].everything;
    }
    own.input = embedding && block == load.order.begin() ? 0 : x.hidden;  // 0: it begins at the tokens
  }
  if (embedding) chain.before = x.mask + (selected ? x.embedding_selected : x.embedding);
  chain.hidden = x.hidden;
  chain.output = load.backward == StageBackward::Nothing ? 0 : x.hidden;
  chain.has_head = load.head;
  if (load.head) chain.head = head_kept_bytes(x, load.recompute.keeps);
  return chain;
}

RecomputeChain stage_chain(const PlannedRun& run, const ActivationBytes& x, const StageLoad& load) {
  RecomputeChain chain = stage_chain(x, load);
  const size_t parts = x.parts.size() / x.trained.size();
  const bool splits = spec::traits_of(run.spec.pipeline)->splits_backward;
  const bool own_graphs = load.on_tier > 0;
  if (own_graphs) chain.kept_output = x.hidden;
  double pending = splits && load.head ? head_pending_bytes(x) : 0;  // of what is behind the block
  for (size_t i = chain.blocks.size(); i-- > 0;) {
    const PlacedBlock& block = load.order[static_cast<size_t>(chain.first) + i];
    const bool is_last = i + 1 == chain.blocks.size();
    BlockPlace place{
        .keeps = load.recompute.keeps, .kind = block.first / parts, .gradient_is_ours = load.head || !is_last};
    const bool stays = is_last && output_stays(run, x, load);
    chain.blocks[i].working = pending + block_working_bytes(run, x, place) + (stays ? x.hidden : 0);
    place.own_graph = true;
    chain.blocks[i].at_border = pending + block_working_bytes(run, x, place);
    if (own_graphs) chain.blocks[i].working = chain.blocks[i].at_border;
    for (size_t part = block.first; part < block.last; ++part) pending += splits ? x.parts[part].pending : 0;
  }
  if (load.head) chain.head_working = head_working_bytes(run, x);
  // Behind the last product: the block's input, the sum with the first branch, the product's input and output. In the
  // activation: its input in place of the product's output.
  chain.forward = std::max(x.activated + 3 * x.hidden, x.inner + 2 * x.hidden) + x.gathered;
  chain.padding = kTensors * kBlockOfDisk;
  chain.is_pipelined = run.layout.pipe > 1;
  if (chain.first > 0) chain.least = forward_bytes(x, load);
  if (splits) chain.least = std::max(chain.least, pending_kept_bytes(x, load) + x.before_product());
  return chain;
}

std::vector<spec::RecomputedBlocks> segments_of(const StageLoad& load) {
  return spec::recomputed_segments(load.recompute, static_cast<int>(load.order.size()));
}

}  // namespace braid::plan
