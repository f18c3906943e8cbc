// Closed forms: of time by the bubble, of memory by the microbatches under way.
#include "braid/predict/pipeline_estimate.h"

#include <algorithm>
#include <numeric>

namespace braid {
namespace {

double seconds_of(const StageTimes& stage) { return stage.forward + stage.input_grad + stage.weight_grad; }

// Sums that the forms are written in.
struct Sums {
  int p, m, v, group;
  double c;
  double forward = 0, input_grad = 0, weight_grad = 0;  // of the mean stage
  std::vector<double> rank;                             // seconds of a microbatch on each rank
  double all = 0;                                       // S
  double busiest = 0;                                   // R
  double fill = 0;                                      // until the first microbatch is on the last rank
  double longest_after_fill = 0;                        // of each rank's way to its first microbatch and its work
  double slots = 0;  // of the busiest rank if every pass of a stage took as long as its longest

  Sums(const PipelineQuestion& question, const ScheduleTraits& traits)
      : p(question.request.ranks),
        m(question.request.microbatches),
        v(static_cast<int>(question.stages.size()) / p),
        group(question.request.group),
        c(question.transfer),
        rank(p) {
    const auto count = static_cast<double>(question.stages.size());
    for (size_t i = 0; i < question.stages.size(); ++i) {
      const StageTimes& stage = question.stages[i];
      forward += stage.forward / count;
      input_grad += stage.input_grad / count;
      weight_grad += stage.weight_grad / count;
      rank[rank_of_stage(traits, p, static_cast<int>(i))] += seconds_of(stage);
    }
    all = std::accumulate(rank.begin(), rank.end(), 0.0);
    // Both copies of a mirrored stage work on half of the microbatches.
    if (traits.placement == StagePlacement::Mirrored) {
      for (int r = 0; r < p / 2; ++r) rank[r] = rank[p - 1 - r] = (rank[r] + rank[p - 1 - r]) / 2;
    }
    busiest = *std::max_element(rank.begin(), rank.end());
    for (int r = 0; r < p; ++r) {
      longest_after_fill = std::max(longest_after_fill, fill + m * rank[r]);
      if (r + 1 < p) fill += question.stages[r].forward + c;
    }
    slots = 3 * v * std::max({forward, input_grad, weight_grad});
  }
};

double flushed(const Sums& z, bool all_forwards_first) {
  double period = z.busiest;
  double way = 0;  // from rank i to the last and back
  for (int i = z.p - 1; i >= 0 && !all_forwards_first; --i) {
    way += z.rank[i] + (i < z.p - 1 ? 2 * z.c : 0);
    period = std::max(period, way / (z.p - i));
  }
  return z.all + 2 * (z.p - 1) * z.c + (z.m - 1) * period;
}

// What a microbatch needs with nobody in its way, and the others behind it on the busiest rank.
double alone(const Sums& z) { return z.all + 2 * (z.p * z.v - 1) * z.c + (z.m - 1) * z.busiest / z.v; }

double chunked(const Sums& z) {
  return std::max(alone(z), z.m * z.busiest + (z.all - z.busiest) / z.v + (z.p > 1 ? 3 * z.p - 2 : 0) * z.c);
}

// Bubble of a pipeline of even stages; `way` is a transfer.
double even_bubble(std::string_view name, const Sums& z) {
  const double f = z.forward + z.c, i = z.input_grad + z.c, w = z.weight_grad;
  const double apart = z.p - 1;
  if (name == "zb-h1" || name == "zb-1p" || name == "interleaved-zb") return apart * std::max(f, f + i - w);
  if (name == "zb-h2" || name == "zb-2p") return apart * std::max(0.0, z.forward + z.input_grad - 2 * w);
  if (name == "dualpipe") return (z.p / 2 - 1) * (f + 2 * i - w);
  if (name == "dualpipev") return apart * (f + 2 * i - w);
  const double pass = (f + i + w) / 3;
  if (name == "v-half") return (z.p <= 2 ? apart : 3 * z.p - (z.p % 2 == 0 ? 7 : 4)) * pass;
  if (name == "v-min") return (4 * z.p - (z.p % 3 == 0 ? 7 : 5)) * pass;
  return 0;  // zb-v
}

// Of schedules that split the backward pass. No rank ends before it has done its own work after the first microbatch
// has come to it; where that leaves time, the bubble of even stages is in it.
double split(const ScheduleTraits& traits, const Sums& z, StepEnd end) {
  const std::string_view name = traits.name;
  const double bubble = even_bubble(name, z);
  double period = z.busiest;
  if (name == "v-min") period = std::max(period, z.slots + 4 * z.c);  // its passes take turns in slots of one length
  if (traits.placement == StagePlacement::V && name != "dualpipev") {
    return z.m * period + (end == StepEnd::PostValidated ? bubble : std::max(bubble, z.fill));
  }
  const double even = z.m * z.all / z.p;
  if (end == StepEnd::PostValidated) return std::max(z.m * period, even + bubble);
  if (name == "dualpipe") return std::max(z.m * period, even + bubble);
  return std::max(z.longest_after_fill, even + std::max(bubble, z.fill));
}

double seconds_of(const PipelineQuestion& question, const ScheduleTraits& traits, const Sums& z) {
  const std::string_view name = traits.name;
  if (name == "naive") return z.m * (z.all + 2 * (z.p - 1) * z.c);
  if (name == "interleaved" || name == "looped-bfs") return chunked(z);
  if (traits.splits_backward) return split(traits, z, question.end);
  return flushed(z, name == "gpipe");
}

// Stages x microbatches of rank r that wait for their input-gradient pass, and beside them for the weight pass.
struct UnderWay {
  double activations = 0, pending = 0;
};

UnderWay under_way(std::string_view name, const Sums& z, int r) {
  const double p = z.p, v = z.v, all = static_cast<double>(z.m) * v;
  const double group = z.group > 0 ? z.group : z.m / std::max(1, z.m / z.p);
  if (name == "naive") return {1, 0};
  if (name == "gpipe" || name == "looped-bfs") return {all, 0};
  if (name == "interleaved") return {std::min(all, 2 * (p - 1 - r) + (v - 1) * group + 1), 0};
  if (name == "interleaved-zb") return {std::min(all, (v - 1) * group + p - r), static_cast<double>(r)};
  if (name == "zb-h1") return {p - r, static_cast<double>(r)};
  if (name == "zb-1p") return {p, 0};
  if (name == "zb-h2") return {2 * (p - r) - 1, 2.0 * r};
  if (name == "zb-2p" || name == "zb-v") return {2 * p, 0};
  if (name == "v-half") return {p + 2, 0};
  if (name == "v-min") return {2 * p / 3 + 2, 0};
  if (name == "dualpipe") return {p + 1, 0};
  if (name == "dualpipev") return {2 * p + 1, 0};
  return {p - r, 0};
}

}  // namespace

int rank_of_stage(const ScheduleTraits& traits, int num_ranks, int stage) {
  if (traits.placement == StagePlacement::V && stage >= num_ranks) return 2 * num_ranks - 1 - stage;
  return stage % num_ranks;
}

PipelineOutcome estimated_outcome(const PipelineQuestion& question, const ScheduleTraits& traits) {
  const Sums sums(question, traits);
  PipelineOutcome outcome{seconds_of(question, traits, sums), sums.m * sums.busiest, std::vector<double>(sums.p)};
  for (size_t i = 0; i < question.held.size(); ++i) {
    const int rank = rank_of_stage(traits, sums.p, static_cast<int>(i));
    UnderWay count = under_way(traits.name, sums, rank);
    count.activations = std::min(count.activations, static_cast<double>(sums.m) * sums.v);
    count.pending = std::min(count.pending, sums.m * sums.v - count.activations);
    const HeldBytes& held = question.held[i];
    outcome.held_bytes[rank] += (count.activations * held.activation + count.pending * held.pending) / sums.v;
  }
  return outcome;
}

}  // namespace braid
