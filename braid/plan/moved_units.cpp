// Finds the fullest moment among the head and the first three blocks that run backward: later ones hold less, because
// what the blocks behind them kept is freed.
#include "braid/plan/moved_units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "braid/plan/braid_memory.h"
#include "braid/plan/moved_activations.h"
#include "braid/plan/pass_bytes.h"
#include "braid/spec/partition.h"

namespace braid::plan {
namespace {

// The bytes of a rank's units: of those that its ends have, and of one block. Each begins at a block of the disk.
struct UnitBytes {
  double block = 0, head = 0, embedding = 0, tied = 0;

  double most() const { return std::max({block, head, embedding, tied}); }
};

using CountOf = std::function<double(const ParameterSum& sum)>;

UnitBytes units_of(const PlannedRun& run, const RankShare& share, double element, const CountOf& count) {
  const auto bytes = [&](double elements) {
    return elements * element == 0 ? 0 : elements * element + static_cast<double>(chunk_alignment(0));
  };
  const PartParameters parts = part_parameters(run.spec, run.layout);
  const bool is_tied = parts.head != OutputWeights::Untied;
  UnitBytes units{.block = bytes(count(parts.block.shared) + count(parts.block.experts))};
  if (share.head) units.head = bytes(count(parts.last_norm) + (is_tied ? 0 : count(parts.table)));
  if (share.embedding) units.embedding = bytes(count(parts.positions) + (is_tied ? 0 : count(parts.tokens)));
  if (is_tied && (share.head || share.embedding)) units.tied = bytes(count(parts.tokens));
  return units;
}

// Returns the bytes that the stage frees with a block.
double kept_by_block(const ActivationBytes& x, StageLoad stage) {
  stage.embedding = stage.head = false;
  return (kept_bytes(x, stage) - x.hidden) / std::max(stage.blocks, 1.0);
}

// Two units that wait to be written, the later first.
using Waiting = std::array<double, 2>;

// Returns the units that wait when a microbatch begins.
Waiting waiting_at_begin(const PlannedRun& run, const RankShare& share, const UnitBytes& units) {
  const RunLayout& layout = run.layout;
  if (layout.microbatches == 1) return {};
  const bool several = layout.stages.size() > static_cast<size_t>(layout.pipe) || layout.copies_in_pipe > 1;
  if (several) return {units.most(), units.most()};
  std::vector<double> last;
  if (share.embedding) last = {units.tied, units.embedding};
  const double trained = units.block == 0 ? 0 : (share.parameters.count() - share.ends.count) / share.block.count();
  for (int block = 0; block < std::min(2.0, std::round(trained)); ++block) last.push_back(units.block);
  std::erase(last, 0);
  last.resize(2);
  return {last[0], last[1]};
}

// The gradients in memory at the fullest moments of a stage.
struct GradientBytes {
  double at_begin = 0, in_head = 0, in_block = 0, in_first = 0;
};

// Returns the bytes of the chunks by which a unit is added to its sum on disk.
double chunk_bytes(const PlannedRun& run, double unit) {
  if (run.layout.microbatches == 1 || unit == 0) return 0;
  return 2 * (std::min(std::ldexp(run.spec.memory.chunk_mb, 20), unit) + static_cast<double>(chunk_alignment(0)));
}

// In the last microbatch a unit is added when the next one has a complete gradient. That is the head's table, and a
// block's last product, unless a bias or a norm behind them comes first: then fewer activations are there.
GradientBytes gradients_of(const PlannedRun& run, const RankShare& share, const ActivationBytes& x,
                           const StageLoad& stage) {
  const double element = is_resident(run.spec.memory.gradients)
                             ? 0
                             : state_bytes(run.spec.train.dtype, run.formulas, {.count = 1}).gradients;
  const UnitBytes units = units_of(run, share, element, [](const ParameterSum& sum) { return sum.count; });
  const bool is_fast = run.spec.train.reduction == Reduction::Fast, both = share.head && share.embedding;
  const Waiting begin = waiting_at_begin(run, share, units);
  const Waiting waiting = stage.head ? Waiting{units.head, both ? begin[0] : units.tied} : begin;
  const double third = is_fast ? 1 : 0;  // a unit that is written while another is in flight
  GradientBytes bytes{.at_begin = begin[0] + third * begin[1]};
  const auto adding = [&](double unit, double freed) { return std::max(0.0, chunk_bytes(run, unit) - freed); };
  const double in_head = units.tied > 0 ? x.all_tokens + x.logits : 0, in_block = x.inner_sums > 0 ? x.activated : 0;
  bytes.in_head = bytes.at_begin + units.head + units.tied + adding(begin[0], in_head);
  // Gradients of up to three blocks wait to be written. Meanwhile backward frees the activations of the last blocks,
  // unless these are on disk.
  const bool last_are_kept = stage.on_tier == 0 || stage.on_tier + 3 <= std::ssize(stage.order);
  const double block = units.block, kept = last_are_kept ? kept_by_block(x, stage) : 0;
  bytes.in_block =
      (both ? units.tied : 0) + std::max({block + waiting[0] + third * waiting[1] + adding(waiting[0], in_block),
                                          2 * block + waiting[0] - kept + adding(block, in_block),
                                          3 * block - 2 * kept + adding(block, in_block)});
  bytes.in_first = (both ? units.tied : 0) + std::min(3.0, std::ceil(stage.blocks)) * block + adding(block, in_block);
  return bytes;
}

// Returns the number of blocks that are recomputed together.
int most_at_once(const StageLoad& stage) {
  int at_once = 1;
  for (const auto& segment : recomputed_segments(stage.recompute, static_cast<int>(std::ceil(stage.blocks)))) {
    at_once = std::max(at_once, segment.segment);
  }
  return at_once;
}

}  // namespace

double moved_unit_bytes(const PlannedRun& run, const RankShare& share, double of_weight) {
  const UnitBytes weights = units_of(run, share, of_weight, [](const ParameterSum& sum) { return sum.all(); });
  const ActivationBytes x(run.spec, run.layout);
  const ScheduleTraits& schedule = *spec::traits_of(run.spec.pipeline);
  const bool splits = schedule.splits_backward && schedule.placement != schedule::StagePlacement::Mirrored;
  double most = 0;
  for (const StageLoad& stage : run.layout.stages) {
    if ((stage.embedding && !share.embedding) || (stage.head && !share.head)) continue;
    WorkingBytes working = working_bytes_at(run, x, stage);
    working.in_block -= working.unused;
    if (schedule.splits_backward) working.in_block = std::max(working.in_block, working.at_end);
    const GradientBytes gradients = gradients_of(run, share, x, stage);
    const int at_once = most_at_once(stage);
    const bool has_next = at_once < stage.blocks;
    const double next = has_next ? weights.block : stage.embedding ? weights.embedding + weights.tied : 0;
    const double in_block = working.in_block + std::min<double>(at_once, std::ceil(stage.blocks)) * weights.block +
                            next + (splits ? gradients.at_begin : gradients.in_block);
    const double in_head = working.in_head + weights.head + weights.tied + weights.block +
                           (splits ? gradients.at_begin : gradients.in_head);
    // While the first block runs backward, the embedding is read. The activations of the other blocks are freed.
    const double freed = std::min(stage.blocks - 1, stage.blocks - stage.on_tier) * kept_by_block(x, stage);
    const bool ends_in_table = stage.embedding && !splits && x.embedding_runs_backward;
    const double in_first =
        ends_in_table ? working.in_block - freed + weights.block + weights.embedding + weights.tied + gradients.in_first
                      : 0;
    const double in_weight_pass = splits ? std::max(gradients.in_block, stage.head ? gradients.in_head : 0) : 0;
    const double forward = moved_activations(run, x, stage).forward;
    const double in_forward = forward > 0 ? forward + 2 * weights.block + gradients.at_begin : 0;
    const double fullest = std::max({in_block, stage.head ? in_head : 0, in_first, in_weight_pass, in_forward});
    most = std::max(most, fullest - std::max({working.in_block, working.in_head, forward}));
  }
  return most;
}

}  // namespace braid::plan
