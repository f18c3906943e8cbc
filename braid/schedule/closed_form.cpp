#include "braid/schedule/closed_form.h"

#include <algorithm>
#include <numeric>

namespace braid::schedule {
namespace {

double seconds_of(const StageTimes& stage) { return stage.forward + stage.input_grad + stage.weight_grad; }

}  // namespace

StepSums::StepSums(const StepFacts& facts)
    : p(facts.ranks),
      m(facts.microbatches),
      v(static_cast<int>(facts.stages.size()) / p),
      group(facts.group > 0 ? facts.group : m / std::max(1, m / p)),
      c(facts.transfer),
      end(facts.end),
      rank(p) {
  const auto count = static_cast<double>(facts.stages.size());
  for (size_t i = 0; i < facts.stages.size(); ++i) {
    const StageTimes& stage = facts.stages[i];
    forward += stage.forward / count;
    input_grad += stage.input_grad / count;
    weight_grad += stage.weight_grad / count;
    rank[owner_of_stage(facts.placement, p, static_cast<int>(i))] += seconds_of(stage);
  }
  all = std::accumulate(rank.begin(), rank.end(), 0.0);
  // Each copy of a mirrored stage processes half of the microbatches.
  if (facts.placement == StagePlacement::Mirrored) {
    for (int r = 0; r < p / 2; ++r) rank[r] = rank[p - 1 - r] = (rank[r] + rank[p - 1 - r]) / 2;
  }
  busiest = *std::max_element(rank.begin(), rank.end());
  for (int r = 0; r < p; ++r) {
    longest_after_fill = std::max(longest_after_fill, fill + m * rank[r]);
    if (r + 1 < p) fill += facts.stages[r].forward + c;
  }
  slots = 3 * v * std::max({forward, input_grad, weight_grad});
}

namespace {

// Returns the seconds of a step that runs one microbatch at a time.
double naive_seconds(const StepSums& z) { return z.m * (z.all + 2 * (z.p - 1) * z.c); }

double flushed(const StepSums& z, double period) { return z.all + 2 * (z.p - 1) * z.c + (z.m - 1) * period; }

double all_forwards_first(const StepSums& z) { return flushed(z, z.busiest); }

double in_turn(const StepSums& z) {
  double period = z.busiest;
  double way = 0;  // seconds from rank i to the last rank and back
  for (int i = z.p - 1; i >= 0; --i) {
    way += z.rank[i] + (i < z.p - 1 ? 2 * z.c : 0);
    period = std::max(period, way / (z.p - i));
  }
  return flushed(z, period);
}

// Returns the seconds of one microbatch that never waits, plus those of one stage of the busiest rank for each of the
// others.
double alone(const StepSums& z) { return z.all + 2 * (z.p * z.v - 1) * z.c + (z.m - 1) * z.busiest / z.v; }

double chunked(const StepSums& z) {
  return std::max(alone(z), z.m * z.busiest + (z.all - z.busiest) / z.v + (z.p > 1 ? 3 * z.p - 2 : 0) * z.c);
}

// Returns the seconds of a schedule that splits the backward. It is the mean work of a rank plus the bubble of even
// stages, but at least the work of the busiest rank. Without PostValidated, a rank's work begins when its first
// microbatch arrives, and the bubble is at least the time until the last rank has its first microbatch.
double split(const StepSums& z, double bubble) {
  const double even = z.m * z.all / z.p;
  if (z.end == StepEnd::PostValidated) return std::max(z.m * z.busiest, even + bubble);
  return std::max(z.longest_after_fill, even + std::max(bubble, z.fill));
}

double two_ways(const StepSums& z, double bubble) { return std::max(z.m * z.busiest, z.m * z.all / z.p + bubble); }

double there_and_back(const StepSums& z, double period, double bubble) {
  return z.m * period + (z.end == StepEnd::PostValidated ? bubble : std::max(bubble, z.fill));
}

// The bubbles of even stages.
double apart(const StepSums& z) { return z.p - 1; }
double zero_bubble(const StepSums& z) {
  const double f = z.forward + z.c, i = z.input_grad + z.c, w = z.weight_grad;
  return apart(z) * std::max(f, f + i - w);
}
double twice_under_way(const StepSums& z) {
  return apart(z) * std::max(0.0, z.forward + z.input_grad - 2 * z.weight_grad);
}
double overlapped(const StepSums& z) { return (z.forward + z.c) + 2 * (z.input_grad + z.c) - z.weight_grad; }
double mean_pass(const StepSums& z) { return ((z.forward + z.c) + (z.input_grad + z.c) + z.weight_grad) / 3; }

double all_of(const StepSums& z) { return static_cast<double>(z.m) * z.v; }

}  // namespace

namespace closed_forms {

constinit const ClosedForm naive{naive_seconds, [](const StepSums&, double) { return UnderWay{1, 0}; }};
constinit const ClosedForm gpipe{all_forwards_first, [](const StepSums& z, double) { return UnderWay{all_of(z), 0}; }};
constinit const ClosedForm one_f_one_b{in_turn, [](const StepSums& z, double r) { return UnderWay{z.p - r, 0}; }};
constinit const ClosedForm interleaved{chunked, [](const StepSums& z, double r) {
                                         return UnderWay{2 * (z.p - 1 - r) + (z.v - 1) * z.group + 1, 0};
                                       }};
constinit const ClosedForm looped_bfs{chunked, [](const StepSums& z, double) { return UnderWay{all_of(z), 0}; }};
constinit const ClosedForm zb_h1{[](const StepSums& z) { return split(z, zero_bubble(z)); },
                                 [](const StepSums& z, double r) {
                                   return UnderWay{z.p - r, r};
                                 }};
constinit const ClosedForm zb_1p{[](const StepSums& z) { return split(z, zero_bubble(z)); },
                                 [](const StepSums& z, double) { return UnderWay{.either = 1.0 * z.p}; }};
constinit const ClosedForm interleaved_zb{[](const StepSums& z) { return split(z, zero_bubble(z)); },
                                          [](const StepSums& z, double r) {
                                            return UnderWay{std::min(all_of(z), (z.v - 1) * z.group + z.p - r), r};
                                          }};
constinit const ClosedForm zb_h2{[](const StepSums& z) { return split(z, twice_under_way(z)); },
                                 [](const StepSums& z, double r) {
                                   return UnderWay{2 * (z.p - r) - 1, 2 * r};
                                 }};
constinit const ClosedForm zb_2p{[](const StepSums& z) { return split(z, twice_under_way(z)); },
                                 [](const StepSums& z, double) { return UnderWay{.either = 2.0 * z.p}; }};
constinit const ClosedForm zb_v{[](const StepSums& z) { return there_and_back(z, z.busiest, 0); },
                                [](const StepSums& z, double) { return UnderWay{.either = 2.0 * z.p}; }};
constinit const ClosedForm v_half{[](const StepSums& z) {
                                    const double passes = z.p <= 2 ? apart(z) : 3 * z.p - (z.p % 2 == 0 ? 7 : 4);
                                    return there_and_back(z, z.busiest, passes * mean_pass(z));
                                  },
                                  [](const StepSums& z, double) { return UnderWay{.either = z.p + 2.0}; }};
constinit const ClosedForm v_min{[](const StepSums& z) {
                                   const double period = std::max(
                                       z.busiest, z.slots + 4 * z.c);  // v-min's passes are in slots of one length
                                   return there_and_back(z, period, (4 * z.p - (z.p % 3 == 0 ? 7 : 5)) * mean_pass(z));
                                 },
                                 [](const StepSums& z, double) { return UnderWay{.either = 2.0 * z.p / 3 + 2}; }};
constinit const ClosedForm dualpipe{[](const StepSums& z) { return two_ways(z, (z.p / 2 - 1) * overlapped(z)); },
                                    [](const StepSums& z, double) {
                                      return UnderWay{z.p + 1.0, 0};
                                    }};
constinit const ClosedForm dualpipev{[](const StepSums& z) { return split(z, apart(z) * overlapped(z)); },
                                     [](const StepSums& z, double) {
                                       return UnderWay{2.0 * z.p + 1, 0};
                                     }};

}  // namespace closed_forms

}  // namespace braid::schedule
