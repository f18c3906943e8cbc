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

constexpr int kBlocksWaiting = 3;  // most blocks whose gradients wait to be written

// Returns true if the activations of some of the last blocks are on disk, which are the first to run backward.
bool moves_last_blocks(const StageLoad& stage) {
  return stage.on_tier > 0 && stage.on_tier + kBlocksWaiting > std::ssize(stage.order);
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
  double at_begin = 0, in_head = 0, in_block = 0;
  double in_last = 0, in_others = 0, in_first = 0;  // while the last block runs, any block but the first, the first
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
  const double block = units.block, kept = moves_last_blocks(stage) ? 0 : kept_by_block(x, stage);
  bytes.in_block =
      (both ? units.tied : 0) + std::max({block + waiting[0] + third * waiting[1] + adding(waiting[0], in_block),
                                          2 * block + waiting[0] - kept + adding(block, in_block),
                                          3 * block - 2 * kept + adding(block, in_block)});
  // The blocks so far, and those units that waited before them and are not written yet.
  const auto after = [&](double blocks) {
    const double before = blocks < 2 ? waiting[0] + third * waiting[1] : blocks < 3 ? waiting[0] : 0;
    return (both ? units.tied : 0) + std::min<double>(blocks, kBlocksWaiting) * block + before +
           adding(blocks < 2 ? waiting[0] : block, in_block);
  };
  const double blocks = std::ceil(stage.blocks);
  bytes.in_last = after(1);
  for (double so_far = 1; so_far < blocks; ++so_far) bytes.in_others = std::max(bytes.in_others, after(so_far));
  bytes.in_first =
      moves_last_blocks(stage)
          ? std::max(after(blocks), bytes.in_others)
          : (both ? units.tied : 0) + std::min<double>(kBlocksWaiting, blocks) * block + adding(block, in_block);
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

// A stage and what its passes have in memory.
struct StageUnits {
  const StageLoad& stage;
  const UnitBytes& weights;
  GradientBytes gradients;
  bool splits;

  // Returns the weights and gradients while the head runs.
  double in_head() const {
    return weights.head + weights.tied + weights.block + (splits ? gradients.at_begin : gradients.in_head);
  }
  // Returns the gradients of a separate weight pass whose fullest block has `in_block`.
  double in_weight_pass(double in_block) const { return std::max(in_block, stage.head ? gradients.in_head : 0); }
};

// Returns the bytes of units beyond the most activations of the stage.
double beyond_activations(const PlannedRun& run, const ActivationBytes& x, const StageUnits& units) {
  const auto& [stage, weights, gradients, splits] = units;
  WorkingBytes working = working_bytes_at(run, x, stage);
  working.in_block -= working.unused;
  if (spec::traits_of(run.spec.pipeline)->splits_backward) {
    working.in_block = std::max(working.in_block, working.at_end);
  }
  const int at_once = most_at_once(stage);
  const bool has_next = at_once < stage.blocks;
  const double next = has_next ? weights.block : stage.embedding ? weights.embedding + weights.tied : 0;
  const double in_block = working.in_block + std::min<double>(at_once, std::ceil(stage.blocks)) * weights.block + next +
                          (splits ? gradients.at_begin : gradients.in_block);
  const double in_head = stage.head ? working.in_head + units.in_head() : 0;
  // While the first block runs backward, the embedding is read. The activations of the other blocks are freed.
  const double freed = std::min(stage.blocks - 1, stage.blocks - stage.on_tier) * kept_by_block(x, stage);
  const bool ends_in_table = stage.embedding && !splits && x.embedding_runs_backward;
  const double in_first =
      ends_in_table ? working.in_block - freed + weights.block + weights.embedding + weights.tied + gradients.in_first
                    : 0;
  const double in_weight_pass = splits ? units.in_weight_pass(gradients.in_block) : 0;
  const double forward = moved_activations(run, x, stage).forward;
  const double in_forward = forward > 0 ? forward + 2 * weights.block + gradients.at_begin : 0;
  const double fullest = std::max({in_block, in_head, in_first, in_weight_pass, in_forward});
  return fullest - std::max({working.in_block, working.in_head, forward});
}

// The most bytes of activations and units together, and of activations alone, in the stages of a rank.
struct Fullest {
  double all = 0, activations = 0;

  void include(double of_activations, double of_units) {
    if (of_activations == 0) return;
    all = std::max(all, of_activations + of_units);
    activations = std::max(activations, of_activations);
  }
};

// Adds a stage whose last blocks' activations are on disk.
void add_moved(const PlannedRun& run, const ActivationBytes& x, const StageUnits& units, Fullest& fullest) {
  const auto& [stage, weights, gradients, splits] = units;
  const MovedActivations moved = moved_activations(run, x, stage);
  const MovedPeaks& peaks = moved.peaks;
  const bool several = run.layout.stages.size() > static_cast<size_t>(run.layout.pipe);
  const double copies = several || !stage.head ? moved.last : 0;  // that the pass before a forward has left
  const double forward = std::min(2.0, std::ceil(stage.blocks)) * weights.block + gradients.at_begin;
  fullest.include(peaks.forward, forward);
  if (!stage.embedding) fullest.include(peaks.forward_of_first + copies, forward);
  const double others = moved.last > 0 ? peaks.backward_of_others : peaks.backward;
  fullest.include(others, 2 * weights.block + (splits ? gradients.at_begin : gradients.in_others));
  const double table = stage.embedding ? weights.embedding + weights.tied : 0;
  fullest.include(peaks.backward_of_first, weights.block + table + (splits ? gradients.at_begin : gradients.in_first));
  if (stage.head) fullest.include(moved.memory.kept + moved.head_working + moved.last, units.in_head());
  if (!splits) return;
  fullest.include(pending_kept_bytes(x, stage) + weight_working_bytes(run, x, stage),
                  units.in_weight_pass(gradients.in_last));
}

}  // namespace

double moved_unit_bytes(const PlannedRun& run, const RankShare& share, double of_weight) {
  const UnitBytes weights = units_of(run, share, of_weight, [](const ParameterSum& sum) { return sum.all(); });
  const ActivationBytes x(run.spec, run.layout);
  const ScheduleTraits& schedule = *spec::traits_of(run.spec.pipeline);
  const bool mirrored = schedule.placement == schedule::StagePlacement::Mirrored;
  double most = 0;
  Fullest moved;
  for (const StageLoad& stage : run.layout.stages) {
    if ((stage.embedding && !share.embedding) || (stage.head && !share.head)) continue;
    const StageUnits units{stage, weights, gradients_of(run, share, x, stage), schedule.splits_backward && !mirrored};
    if (moves_last_blocks(stage) && !mirrored) {
      add_moved(run, x, units, moved);
    } else {
      most = std::max(most, beyond_activations(run, x, units));
    }
  }
  return std::max(most, moved.all - moved.activations);
}

}  // namespace braid::plan
