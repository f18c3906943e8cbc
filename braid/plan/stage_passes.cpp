// Divides work by rates, part by part. Exchanges of context and expert ranks do not overlap computation. Those of
// tensor ranks overlap products only under asynchronous tensor parallelism.
#include "braid/plan/stage_passes.h"

#include <algorithm>

#include "braid/plan/block_work.h"

namespace braid::plan {
namespace {

struct Rates {
  DeviceRates device;
  GroupLinks tensor, context, experts;
  double sequence, hidden_bytes, skew;
  bool hides_tensor;  // true: exchanges of tensor ranks overlap products

  PassSeconds seconds(const PassWork& work, AttentionPass kind) const {
    PassSeconds pass;
    for (const Product& product : work.products) pass.compute += device.seconds(product);
    const double products = pass.compute;
    if (work.attention.flops > 0) pass.compute += device.attention_seconds(work.attention, sequence, kind);
    pass.compute += device.stream_seconds(work.streamed_bytes, hidden_bytes);
    if (work.num_reductions > 0) pass.tensor = work.num_reductions * tensor.all_reduce_seconds(work.reduced_bytes);
    if (work.gathered_again > 0) pass.tensor += work.gathered_again * tensor.all_gather_seconds(work.gathered_bytes);
    // An exchange has as many parts as there are ranks. Each overlaps the product of another part, so one stays
    // exposed.
    if (hides_tensor) pass.tensor = std::max(pass.tensor - products, pass.tensor / tensor.size());
    if (tensor.size() > 1) pass.tensor += skew * pass.compute;
    if (work.num_gathers > 0) pass.context = work.num_gathers * context.all_gather_seconds(work.context_bytes);
    if (work.num_exchanges > 0) pass.context += work.num_exchanges * context.all_to_all_seconds(work.exchanged_bytes);
    if (work.num_routes > 0) pass.context += work.num_routes * experts.all_to_all_seconds(work.routed_bytes);
    return pass;
  }

  StagePasses passes(const PartWork& work) const {
    return {seconds(work.forward, AttentionPass::Forward), seconds(work.input_grad, AttentionPass::Backward),
            seconds(work.weight_grad, AttentionPass::Backward)};
  }
};

// The passes of the model's parts on one kind of device.
struct PartPasses {
  StagePasses embedding, head;
  std::vector<StagePasses> parts;           // of blocks: those of ModelAccount
  std::vector<PassSeconds> selected, full;  // by part: the forward that is recomputed
};

void add(StagePasses& stage, double times, const StagePasses& part) {
  stage.forward += times * part.forward;
  stage.input_grad += times * part.input_grad;
  stage.weight_grad += times * part.weight_grad;
}

// Returns the listed blocks that are recomputed.
std::vector<PlacedBlock> recomputed_blocks(const StageLoad& load) {
  std::vector<PlacedBlock> blocks;
  if (load.recompute.keeps != spec::Recompute::Keeps::Listed || load.order.empty()) return blocks;
  for (const auto& segment : spec::recomputed_segments(load.recompute, static_cast<int>(load.order.size()))) {
    blocks.insert(blocks.end(), load.order.begin() + segment.begin, load.order.begin() + segment.end);
  }
  return blocks;
}

}  // namespace

PassSeconds& PassSeconds::operator+=(const PassSeconds& other) {
  compute += other.compute;
  tensor += other.tensor;
  context += other.context;
  return *this;
}

PassSeconds operator*(double times, const PassSeconds& pass) {
  return {times * pass.compute, times * pass.tensor, times * pass.context};
}

PassSeconds StagePasses::all() const {
  PassSeconds sum = forward;
  sum += input_grad;
  sum += weight_grad;
  return sum;
}

std::vector<StagePasses> stage_passes(const RunSpec& spec, const RunLayout& layout, const Cluster& cluster,
                                      FormulaSet formulas) {
  std::vector<PartWork> of_blocks;
  for (size_t part = 0; part < layout.account->parts.size(); ++part) {
    of_blocks.push_back(part_work(spec, layout, part, formulas));
  }
  const PartWork embedding = embedding_work(spec, layout), head = head_work(spec, layout, formulas);
  std::vector<PartPasses> kinds;
  for (const DeviceGroup& group : cluster.devices) {
    const Rates rates{{group, spec.train.dtype},
                      {cluster, layout.tensor_group},
                      {cluster, layout.context_group},
                      {cluster, layout.expert_group},
                      static_cast<double>(spec.model.context),
                      element_bytes(spec.train.dtype) * layout.tokens * spec.model.width,
                      group.skew,
                      formulas == FormulaSet::TorchtitanAsyncTensor};
    PartPasses& kind = kinds.emplace_back(PartPasses{rates.passes(embedding), rates.passes(head)});
    for (const PartWork& work : of_blocks) {
      kind.parts.push_back(rates.passes(work));
      kind.selected.push_back(rates.seconds(work.selected, AttentionPass::Forward));
      kind.full.push_back(rates.seconds(work.full, AttentionPass::Forward));
    }
  }
  std::vector<StagePasses> stages(layout.stages.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    const StageLoad& load = layout.stages[i];
    if (i > 0 && load == layout.stages[i - 1]) {
      stages[i] = stages[i - 1];
      continue;
    }
    const PartPasses& kind = kinds[load.devices];
    const auto keeps = load.recompute.keeps;
    for (size_t part = 0; part < load.parts.size(); ++part) {
      add(stages[i], load.parts[part], kind.parts[part]);
      if (keeps == spec::Recompute::Keeps::Selected) stages[i].input_grad += load.parts[part] * kind.selected[part];
      if (keeps == spec::Recompute::Keeps::SegmentInputs) stages[i].input_grad += load.parts[part] * kind.full[part];
    }
    for (const PlacedBlock& block : recomputed_blocks(load)) {
      for (size_t part = block.first; part < block.last; ++part) stages[i].input_grad += kind.full[part];
    }
    if (load.embedding) add(stages[i], 1, kind.embedding);
    if (load.head) add(stages[i], 1, kind.head);
  }
  return stages;
}

}  // namespace braid::plan
