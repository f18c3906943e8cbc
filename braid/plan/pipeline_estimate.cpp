// Closed forms: of time by the bubble, of memory by the microbatches under way.
#include "braid/plan/pipeline_estimate.h"

#include <algorithm>
#include <numeric>

namespace braid::plan {
namespace {

double seconds_of(const schedule::StageTimes& stage) { return stage.forward + stage.input_grad + stage.weight_grad; }

// Sums that the forms are written in.
struct Sums {
  int p, m, v;
  double group;  // microbatches that pass a chunk before the next one's turn
  double c;
  StepEnd end;
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
        group(question.request.group > 0 ? question.request.group : m / std::max(1, m / p)),
        c(question.transfer),
        end(question.end),
        rank(p) {
    const auto count = static_cast<double>(question.stages.size());
    for (size_t i = 0; i < question.stages.size(); ++i) {
      const schedule::StageTimes& stage = question.stages[i];
      forward += stage.forward / count;
      input_grad += stage.input_grad / count;
      weight_grad += stage.weight_grad / count;
      rank[schedule::owner_of_stage(traits.placement, p, static_cast<int>(i))] += seconds_of(stage);
    }
    all = std::accumulate(rank.begin(), rank.end(), 0.0);
    // Both copies of a mirrored stage work on half of the microbatches.
    if (traits.placement == schedule::StagePlacement::Mirrored) {
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

// One microbatch at a time.
double naive_seconds(const Sums& z) { return z.m * (z.all + 2 * (z.p - 1) * z.c); }

double flushed(const Sums& z, double period) { return z.all + 2 * (z.p - 1) * z.c + (z.m - 1) * period; }

double all_forwards_first(const Sums& z) { return flushed(z, z.busiest); }

double in_turn(const Sums& z) {
  double period = z.busiest;
  double way = 0;  // from rank i to the last and back
  for (int i = z.p - 1; i >= 0; --i) {
    way += z.rank[i] + (i < z.p - 1 ? 2 * z.c : 0);
    period = std::max(period, way / (z.p - i));
  }
  return flushed(z, period);
}

// Returns the time of one unobstructed microbatch, and of the others behind it on the busiest rank.
double alone(const Sums& z) { return z.all + 2 * (z.p * z.v - 1) * z.c + (z.m - 1) * z.busiest / z.v; }

double chunked(const Sums& z) {
  return std::max(alone(z), z.m * z.busiest + (z.all - z.busiest) / z.v + (z.p > 1 ? 3 * z.p - 2 : 0) * z.c);
}

// Schedules that split the backward pass. No rank ends before it has done its own work after the first microbatch has
// come to it; where that leaves time, the bubble of even stages is in it.
double split(const Sums& z, double bubble) {
  const double even = z.m * z.all / z.p;
  if (z.end == StepEnd::PostValidated) return std::max(z.m * z.busiest, even + bubble);
  return std::max(z.longest_after_fill, even + std::max(bubble, z.fill));
}

double two_ways(const Sums& z, double bubble) { return std::max(z.m * z.busiest, z.m * z.all / z.p + bubble); }

double there_and_back(const Sums& z, double period, double bubble) {
  return z.m * period + (z.end == StepEnd::PostValidated ? bubble : std::max(bubble, z.fill));
}

// Bubbles of even stages.
double apart(const Sums& z) { return z.p - 1; }
double zero_bubble(const Sums& z) {
  const double f = z.forward + z.c, i = z.input_grad + z.c, w = z.weight_grad;
  return apart(z) * std::max(f, f + i - w);
}
double twice_under_way(const Sums& z) { return apart(z) * std::max(0.0, z.forward + z.input_grad - 2 * z.weight_grad); }
double overlapped(const Sums& z) { return (z.forward + z.c) + 2 * (z.input_grad + z.c) - z.weight_grad; }
double mean_pass(const Sums& z) { return ((z.forward + z.c) + (z.input_grad + z.c) + z.weight_grad) / 3; }

// Stages x microbatches of rank r that wait for their input-gradient pass, beside them for the weight pass, and beside
// those for either of the two.
struct UnderWay {
  double activations = 0, pending = 0, either = 0;
};

double all_of(const Sums& z) { return static_cast<double>(z.m) * z.v; }

struct ClosedForm {
  std::string_view schedule;
  double (*seconds)(const Sums& z);
  UnderWay (*under_way)(const Sums& z, double r);
};

constexpr ClosedForm kForms[] = {
    {"naive", naive_seconds,
     [](const Sums&, double) {
       return UnderWay{1, 0};
     }},
    {"gpipe", all_forwards_first,
     [](const Sums& z, double) {
       return UnderWay{all_of(z), 0};
     }},
    {"1f1b", in_turn,
     [](const Sums& z, double r) {
       return UnderWay{z.p - r, 0};
     }},
    {"pipedream", in_turn,
     [](const Sums& z, double r) {
       return UnderWay{z.p - r, 0};
     }},
    {"pipedream-2bw", in_turn,
     [](const Sums& z, double r) {
       return UnderWay{z.p - r, 0};
     }},
    {"interleaved", chunked,
     [](const Sums& z, double r) {
       return UnderWay{2 * (z.p - 1 - r) + (z.v - 1) * z.group + 1, 0};
     }},
    {"looped-bfs", chunked,
     [](const Sums& z, double) {
       return UnderWay{all_of(z), 0};
     }},
    {"zb-h1", [](const Sums& z) { return split(z, zero_bubble(z)); },
     [](const Sums& z, double r) {
       return UnderWay{z.p - r, r};
     }},
    {"zb-1p", [](const Sums& z) { return split(z, zero_bubble(z)); },
     [](const Sums& z, double) { return UnderWay{.either = 1.0 * z.p}; }},
    {"interleaved-zb", [](const Sums& z) { return split(z, zero_bubble(z)); },
     [](const Sums& z, double r) {
       return UnderWay{std::min(all_of(z), (z.v - 1) * z.group + z.p - r), r};
     }},
    {"zb-h2", [](const Sums& z) { return split(z, twice_under_way(z)); },
     [](const Sums& z, double r) {
       return UnderWay{2 * (z.p - r) - 1, 2 * r};
     }},
    {"zb-2p", [](const Sums& z) { return split(z, twice_under_way(z)); },
     [](const Sums& z, double) { return UnderWay{.either = 2.0 * z.p}; }},
    {"zb-v", [](const Sums& z) { return there_and_back(z, z.busiest, 0); },
     [](const Sums& z, double) { return UnderWay{.either = 2.0 * z.p}; }},
    {"v-half",
     [](const Sums& z) {
       const double passes = z.p <= 2 ? apart(z) : 3 * z.p - (z.p % 2 == 0 ? 7 : 4);
       return there_and_back(z, z.busiest, passes * mean_pass(z));
     },
     [](const Sums& z, double) { return UnderWay{.either = z.p + 2.0}; }},
    {"v-min",
     [](const Sums& z) {
       const double period = std::max(z.busiest, z.slots + 4 * z.c);  // its passes take turns in slots of one length
       return there_and_back(z, period, (4 * z.p - (z.p % 3 == 0 ? 7 : 5)) * mean_pass(z));
     },
     [](const Sums& z, double) { return UnderWay{.either = 2.0 * z.p / 3 + 2}; }},
    {"dualpipe", [](const Sums& z) { return two_ways(z, (z.p / 2 - 1) * overlapped(z)); },
     [](const Sums& z, double) {
       return UnderWay{z.p + 1.0, 0};
     }},
    {"dualpipev", [](const Sums& z) { return split(z, apart(z) * overlapped(z)); },
     [](const Sums& z, double) {
       return UnderWay{2.0 * z.p + 1, 0};
     }},
};

const ClosedForm& form_of(std::string_view schedule) {
  const auto* form = std::ranges::find(kForms, schedule, &ClosedForm::schedule);
  check(form != std::end(kForms), "every schedule has a closed form");
  return *form;
}

}  // namespace

PipelineOutcome estimated_outcome(const PipelineQuestion& question, const ScheduleTraits& traits) {
  const Sums sums(question, traits);
  const ClosedForm& form = form_of(traits.name);
  PipelineOutcome outcome{form.seconds(sums), sums.m * sums.busiest, std::vector<double>(sums.p)};
  std::vector<double> working(sums.p);
  for (size_t i = 0; i < question.held.size(); ++i) {
    const int rank = schedule::owner_of_stage(traits.placement, sums.p, static_cast<int>(i));
    UnderWay count = form.under_way(sums, rank);
    count.activations = std::min(count.activations, all_of(sums));
    count.pending = std::min(count.pending, all_of(sums) - count.activations);
    count.either = std::min(count.either, all_of(sums));
    const HeldBytes& held = question.held[i];
    outcome.held_bytes[rank] += (count.activations * held.activation + count.pending * held.pending +
                                 count.either * std::max(held.activation, held.pending)) /
                                sums.v;
    working[rank] = std::max(working[rank], held.working);
  }
  for (int rank = 0; rank < sums.p; ++rank) outcome.held_bytes[rank] += working[rank];
  return outcome;
}

}  // namespace braid::plan
