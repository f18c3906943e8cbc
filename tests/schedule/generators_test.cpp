// The table of schedules: what it lists, what it refuses, and what holds for every schedule of every size.
#include "braid/schedule/generators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "braid/base/errors.h"
#include "braid/schedule/csv.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/peaks.h"
#include "braid/schedule/validate.h"
#include "tests/support/sampled.h"
#include "tests/support/schedule_requests.h"

namespace braid::schedule::generators_test {
namespace {

std::string faults_of(const Schedule& schedule) { return print(schedule, validate(schedule, SendMode::Buffered)); }

std::vector<NamedRequest> sweep() {
  const bool full = full_run();
  std::vector<ScheduleRequest> requests;
  for (int p = 1; p <= (full ? 10 : 6); ++p) {
    for (int m = 1; m <= (full ? 40 : 14); ++m) {
      for (int chunks : {0, 1, 3}) {
        for (int group : {0, 2, 3, 5}) requests.push_back({p, m, chunks, group});
      }
    }
  }
  return valid_requests(requests);
}

bool computes_in_op(const Schedule& schedule, bool (*wanted)(const Action&)) {
  return std::any_of(schedule.programs.begin(), schedule.programs.end(),
                     [&](const Program& program) { return std::any_of(program.begin(), program.end(), wanted); });
}

TEST(Generators, EverySizeIsValidAndHoldsItsPromise) {
  std::set<std::string> seen;
  for (const auto& named : sweep()) {
    const Schedule schedule = named.schedule();
    EXPECT_EQ(schedule.name, named.name);
    EXPECT_EQ(faults_of(schedule), "") << named.text();
    const ScheduleProperty& promise = schedule.promise;
    const std::vector<int> activations = peak_activations(schedule);
    const std::vector<int> pending = peak_pending_weight_grads(schedule);
    ASSERT_EQ(promise.peak_activations.size(), activations.size()) << named.text();
    ASSERT_EQ(promise.peak_pending_weight_grads.size(), pending.size()) << named.text();
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
      EXPECT_LE(activations[rank], promise.peak_activations[rank]) << named.text();
      EXPECT_LE(pending[rank], promise.peak_pending_weight_grads[rank]) << named.text();
    }
    seen.insert(named.name);
  }
  EXPECT_EQ(seen.size(), schedule_names().size());
}

TEST(Generators, TraitsSayWhatThereIs) {
  for (const auto& named : valid_requests(4, 8)) {
    const ScheduleTraits& traits = *find_schedule(named.name);
    const Schedule schedule = named.schedule();
    EXPECT_EQ(schedule.num_stages, named.request.ranks * chunks_of(traits, named.request)) << named.text();
    EXPECT_EQ(schedule.num_ranks(), named.request.ranks);
    EXPECT_EQ(schedule.mirrored(), traits.placement == StagePlacement::Mirrored) << named.text();
    if (traits.placement == StagePlacement::V) {
      EXPECT_EQ(schedule.stage_rank.front(), schedule.stage_rank.back());
    }
    const auto contains = [&](bool (*wanted)(const Action&)) { return computes_in_op(schedule, wanted); };
    EXPECT_EQ(contains([](const Action& a) { return a.op == Op::WeightGrad; }), traits.splits_backward) << named.text();
    EXPECT_EQ(contains([](const Action& a) { return a.op == Op::Update; }), traits.asynchronous()) << named.text();
    if (!traits.fuses) {
      EXPECT_FALSE(contains([](const Action& a) { return a.fusion != Fusion::None; }));
    }
  }
  EXPECT_EQ(find_schedule("1f1c"), nullptr);
  EXPECT_EQ(schedule_traits().size(), schedule_names().size());
}

TEST(Generators, EveryFaultOfARequestIsNamed) {
  const std::vector<Problem> problems = schedule_problems("1f1c", {0, -2, -1, -3});
  ASSERT_EQ(problems.size(), 5u);
  EXPECT_EQ(problems[0], (Problem{"schedule", "1f1c", cat("must be one of ", joined(schedule_names())), "1f1b"}));
  EXPECT_EQ(problems[1], (Problem{"ranks", "0", "must be at least 1", "1"}));
  EXPECT_EQ(problems[2], (Problem{"microbatches", "-2", "must be at least 1", "1"}));
  EXPECT_EQ(problems[3].key, "chunks");
  EXPECT_EQ(problems[4].key, "group");
  try {
    make_schedule("1f1c", {0, -2, -1, -3});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems(), problems);
  }
}

TEST(Generators, StagesPerRankAreTheSchedulesOwnUnlessItTakesAny) {
  EXPECT_EQ(schedule_problems("zb-v", {4, 8, 3}), (std::vector<Problem>{{"chunks", "3", "must be 2 for zb-v", "2"}}));
  EXPECT_EQ(schedule_problems("1f1b", {4, 8, 2}), (std::vector<Problem>{{"chunks", "2", "must be 1 for 1f1b", "1"}}));
  EXPECT_EQ(schedule_problems("zb-v", {4, 8, 2}), std::vector<Problem>{});
  EXPECT_EQ(make_schedule("interleaved", {4, 8, 3}).num_stages, 12);
  EXPECT_EQ(make_schedule("interleaved", {4, 8}).num_stages, 8);
}

TEST(Generators, ATableFitsItsRequest) {
  const Schedule schedule = make_schedule("zb-v", {2, 4});
  EXPECT_EQ(schedule_from_table(to_csv(schedule), "mine", {2, 4, 2}).programs, schedule.programs);
  EXPECT_EQ(schedule_from_table(to_csv(schedule), "mine", {2, 4}).name, "mine");
  try {
    schedule_from_table(to_csv(schedule), "mine", {4, 3, 2});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.problems(), (std::vector<Problem>{{"ranks", "4", "the table has 2", "2"},
                                                      {"microbatches", "3", "the table has 4", "4"},
                                                      {"stages", "8", "the table has 4", "4"}}));
  }
  EXPECT_THROW(schedule_from_table("0F0,zap", "mine", {1, 1}), ConfigError);
}

}  // namespace
}  // namespace braid::schedule::generators_test
