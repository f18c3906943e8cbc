// Detection of hung ranks from samples alone: no process, no clock.
#include "braid/launch/hang_detector.h"

#include <gtest/gtest.h>

namespace braid::launch::hang_detector_test {
namespace {

// Looks once a second, at ranks as they are at that second; returns the second and the rank that is hung.
template <class SignsAt>
std::optional<std::pair<int, int>> first_hung(int num_ranks, int seconds, const SignsAt& signs_at,
                                              double progress_seconds = 10) {
  HangDetector watch(num_ranks, progress_seconds);
  for (int second = 0; second <= seconds; ++second) {
    std::vector<RankSample> ranks;
    for (int rank = 0; rank < num_ranks; ++rank) ranks.push_back(signs_at(rank, second));
    if (const auto hung = watch.look(second, ranks)) return std::pair(second, *hung);
  }
  return std::nullopt;
}

using Hung = std::optional<std::pair<int, int>>;

TEST(HangDetector, one_that_does_nothing_while_another_waits_for_it) {
  const auto signs = [](int rank, int) { return RankSample{.waits = rank == 0, .activities = 7 + rank}; };
  EXPECT_EQ(first_hung(2, 1000, signs), Hung({11, 1}));
}

TEST(HangDetector, none_where_nobody_asks) {
  EXPECT_EQ(first_hung(
                1, 1000, [](int, int) { return RankSample(); }, 0),
            Hung());
}

TEST(HangDetector, where_all_wait_the_one_that_has_begun_least) {
  const auto signs = [](int rank, int) { return RankSample{.waits = true, .activities = 9 - rank}; };
  EXPECT_EQ(first_hung(3, 1000, signs), Hung({11, 2}));
}

// It has few activities: those of its start, and one for each request.
TEST(HangDetector, a_server_that_waits_for_requests_is_named_only_among_servers) {
  const auto signs = [](int rank, int) {
    return RankSample{.waits = true, .serves = rank == 0, .activities = 1 + 10 * rank};
  };
  EXPECT_EQ(first_hung(3, 1000, signs), Hung({11, 1}));
  EXPECT_EQ(first_hung(1, 1000, signs), Hung({11, 0}));
}

TEST(HangDetector, those_that_go_on_are_not) {
  EXPECT_EQ(first_hung(2, 1000, [](int, int second) { return RankSample{.activities = second / 9}; }), Hung());
  EXPECT_EQ(first_hung(2, 1000, [](int, int second) { return RankSample{.io_bytes = second / 9}; }), Hung());
  EXPECT_EQ(first_hung(2, 1000, [](int, int) { return RankSample{.held_outside = true}; }), Hung());
  EXPECT_EQ(first_hung(2, 1000,
                       [](int rank, int second) {
                         return rank == 0 ? RankSample{.activities = second} : RankSample{.waits = true};
                       }),
            Hung());
  EXPECT_EQ(first_hung(1, 1000, [](int, int) { return RankSample{.ended = true}; }), Hung());
}

TEST(HangDetector, one_that_computes_or_is_at_files_has_ten_times_as_long) {
  EXPECT_EQ(first_hung(1, 1000, [](int, int second) { return RankSample{.cpu_seconds = 0.5 * second}; }),
            Hung({101, 0}));
  EXPECT_EQ(first_hung(1, 1000, [](int, int) { return RankSample{.of_storage = true}; }), Hung({101, 0}));
}

TEST(HangDetector, slow_steps_stretch_the_time) {
  EXPECT_EQ(first_hung(1, 1000, [](int, int) { return RankSample{.slowest_step = 3}; }), Hung({31, 0}));
}

TEST(HangDetector, time_in_which_nobody_looked_does_not_count) {
  HangDetector watch(1, 10);
  EXPECT_EQ(watch.look(0, {RankSample{}}), std::nullopt);
  EXPECT_EQ(watch.look(500, {RankSample{}}), std::nullopt);
  for (int second = 502; second <= 510; second += 2) EXPECT_EQ(watch.look(second, {RankSample{}}), std::nullopt);
  EXPECT_EQ(watch.look(511, {RankSample{}}), 0);
}

}  // namespace
}  // namespace braid::launch::hang_detector_test
