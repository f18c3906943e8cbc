// The table of schedules, and the checks of a request before a schedule is generated.
#include "braid/schedule/generators.h"

#include <algorithm>
#include <array>

#include "braid/base/text.h"
#include "braid/schedule/csv.h"
#include "braid/schedule/generators/asynchronous.h"
#include "braid/schedule/generators/dual_pipe.h"
#include "braid/schedule/generators/interleaved.h"
#include "braid/schedule/generators/searched_v.h"
#include "braid/schedule/generators/searched_zero_bubble.h"
#include "braid/schedule/generators/zero_bubble.h"

namespace braid {
namespace {

namespace closed_forms = schedule::closed_forms;
using Problems = std::vector<Problem>;

struct Generator {
  ScheduleTraits traits;
  Schedule (*generate)(const ScheduleRequest& request);
  Problems (*problems)(const ScheduleRequest& request) = nullptr;  // checks beyond those of all schedules; null: none
};

// Adapts a generator that takes only ranks and microbatches.
template <Schedule (*kGenerate)(int ranks, int microbatches)>
Schedule plain(const ScheduleRequest& request) {
  return kGenerate(request.ranks, request.microbatches);
}

constexpr Generator kGenerators[] = {
    {{.name = "naive", .summary = "one microbatch at a time, one rank at work", .form = &closed_forms::naive},
     plain<schedule::naive>},
    {{.name = "gpipe", .summary = "all forwards, then all backwards", .form = &closed_forms::gpipe},
     plain<schedule::gpipe>},
    {{.name = "1f1b", .summary = "forward and backward in turn, few activations", .form = &closed_forms::one_f_one_b},
     plain<schedule::one_f_one_b>},
    {{.name = "interleaved",
      .summary = "1f1b over several stages per rank",
      .form = &closed_forms::interleaved,
      .placement = schedule::StagePlacement::Loop,
      .chunks = 0,
      .takes_group = true},
     schedule::interleaved,
     schedule::interleaved_problems},
    {{.name = "looped-bfs",
      .summary = "stage after stage over all microbatches",
      .form = &closed_forms::looped_bfs,
      .placement = schedule::StagePlacement::Loop,
      .chunks = 0},
     schedule::looped_bfs},
    {{.name = "zb-h1",
      .summary = "zero bubble, activations of 1f1b",
      .form = &closed_forms::zb_h1,
      .splits_backward = true},
     plain<schedule::zb_h1>},
    {{.name = "zb-h2",
      .summary = "zero bubble, twice the activations",
      .form = &closed_forms::zb_h2,
      .splits_backward = true},
     plain<schedule::zb_h2>},
    {{.name = "interleaved-zb",
      .summary = "zero bubble over several stages per rank",
      .form = &closed_forms::interleaved_zb,
      .placement = schedule::StagePlacement::Loop,
      .chunks = 0,
      .splits_backward = true,
      .takes_group = true},
     schedule::interleaved_zero_bubble,
     schedule::interleaved_problems},
    {{.name = "zb-v",
      .summary = "zero bubble, two stages per rank in a V",
      .form = &closed_forms::zb_v,
      .placement = schedule::StagePlacement::V,
      .chunks = 2,
      .splits_backward = true},
     plain<schedule::zb_v>},
    {{.name = "dualpipev",
      .summary = "forwards overlap backwards, two stages per rank in a V",
      .form = &closed_forms::dualpipev,
      .placement = schedule::StagePlacement::V,
      .chunks = 2,
      .splits_backward = true,
      .fuses = true},
     plain<schedule::dual_pipe_v>,
     schedule::dual_pipe_v_problems},
    {{.name = "dualpipe",
      .summary = "forwards overlap backwards, in both directions",
      .form = &closed_forms::dualpipe,
      .placement = schedule::StagePlacement::Mirrored,
      .splits_backward = true,
      .fuses = true},
     plain<schedule::dual_pipe>,
     schedule::dual_pipe_problems},
    {{.name = "zb-1p",
      .summary = "zero bubble searched for the times given, activations of 1f1b",
      .form = &closed_forms::zb_1p,
      .splits_backward = true,
      .takes_times = true},
     schedule::zb_1p,
     schedule::searched_zero_bubble_problems},
    {{.name = "zb-2p",
      .summary = "zero bubble searched for the times given, twice the activations",
      .form = &closed_forms::zb_2p,
      .splits_backward = true,
      .takes_times = true},
     schedule::zb_2p,
     schedule::searched_zero_bubble_problems},
    {{.name = "v-half",
      .summary = "two stages per rank in a V, half the activations of 1f1b",
      .form = &closed_forms::v_half,
      .placement = schedule::StagePlacement::V,
      .chunks = 2,
      .splits_backward = true},
     plain<schedule::v_half>},
    {{.name = "v-min",
      .summary = "two stages per rank in a V, a third of the activations of 1f1b",
      .form = &closed_forms::v_min,
      .placement = schedule::StagePlacement::V,
      .chunks = 2,
      .splits_backward = true},
     plain<schedule::v_min>},
    {{.name = "pipedream",
      .summary = "1f1b without flush, an update per microbatch",
      .form = &closed_forms::one_f_one_b,
      .versions = schedule::VersionRule::Own},
     plain<schedule::pipedream>},
    {{.name = "pipedream-2bw",
      .summary = "1f1b without flush, an update per group of microbatches",
      .form = &closed_forms::one_f_one_b,
      .takes_group = true,
      .versions = schedule::VersionRule::DoubleBuffered},
     schedule::pipedream_2bw,
     schedule::pipedream_2bw_problems},
};

constexpr auto kTraits = [] {
  std::array<ScheduleTraits, std::size(kGenerators)> traits;
  for (size_t i = 0; i < traits.size(); ++i) traits[i] = kGenerators[i].traits;
  return traits;
}();

static_assert(std::ranges::all_of(kTraits, [](const ScheduleTraits& traits) { return traits.form != nullptr; }));

const Generator* find_generator(std::string_view name) {
  const auto* found = std::find_if(std::begin(kGenerators), std::end(kGenerators),
                                   [&](const Generator& generator) { return generator.traits.name == name; });
  return found == std::end(kGenerators) ? nullptr : found;
}

Problems number_problems(const ScheduleRequest& request) {
  Problems problems;
  const auto at_least = [&](const char* key, int value, int least) {
    if (value >= least) return;
    problems.push_back({key, std::to_string(value), cat("must be at least ", least), std::to_string(least)});
  };
  at_least("ranks", request.ranks, 1);
  at_least("microbatches", request.microbatches, 1);
  at_least("chunks", request.chunks, 0);
  at_least("group", request.group, 0);
  return problems;
}

void require_equal(const char* key, int requested, int found, Problems& problems) {
  if (requested == found) return;
  problems.push_back({key, std::to_string(requested), cat("the table has ", found), std::to_string(found)});
}

}  // namespace

std::span<const ScheduleTraits> schedule_traits() { return kTraits; }

const ScheduleTraits* find_schedule(std::string_view name) {
  const Generator* generator = find_generator(name);
  return generator == nullptr ? nullptr : &generator->traits;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& traits : kTraits) names.emplace_back(traits.name);
  return names;
}

int chunks_of(const ScheduleTraits& traits, const ScheduleRequest& request) {
  if (traits.chunks > 0) return traits.chunks;
  return request.chunks > 0 ? request.chunks : 2;
}

std::vector<Problem> schedule_problems(std::string_view name, const ScheduleRequest& request) {
  Problems problems = number_problems(request);
  const bool numbers = problems.empty();
  const Generator* generator = find_generator(name);
  if (generator == nullptr) {
    const std::string rule = cat("must be one of ", joined(schedule_names()));
    problems.insert(problems.begin(), {"schedule", std::string(name), rule, nearest(name, schedule_names())});
    return problems;
  }
  if (request.chunks > 0 && request.chunks != chunks_of(generator->traits, request)) {
    const std::string own = std::to_string(generator->traits.chunks);
    problems.push_back({"chunks", std::to_string(request.chunks), cat("must be ", own, " for ", name), own});
  }
  if (numbers && generator->problems != nullptr) {
    for (auto& problem : generator->problems(request)) problems.push_back(std::move(problem));
  }
  return problems;
}

Schedule make_schedule(std::string_view name, const ScheduleRequest& request) {
  Problems problems = schedule_problems(name, request);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return find_generator(name)->generate(request);
}

Schedule schedule_from_table(std::string_view table, std::string name, const ScheduleRequest& request) {
  Schedule schedule = schedule::from_csv(table, std::move(name));
  Problems problems;
  require_equal("ranks", request.ranks, schedule.num_ranks(), problems);
  require_equal("microbatches", request.microbatches, schedule.num_microbatches, problems);
  if (request.chunks > 0) {
    require_equal("stages", request.chunks * request.ranks, schedule.num_stages, problems);
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return schedule;
}

}  // namespace braid
