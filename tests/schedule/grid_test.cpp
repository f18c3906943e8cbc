// The printed grid: long spans, several stages per rank, colour, elision.
#include "braid/schedule/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/timeline.h"

namespace braid::schedule::grid_test {
namespace {

TEST(Grid, LongSpansAreDrawnOut) {
  Timeline timeline;
  timeline.ranks = {{{{Op::Forward, 0, 0}, 0, 1}, {{Op::RecvBackward, 0, 0}, 1, 4}, {{Op::FullBackward, 0, 0}, 4, 6}},
                    {{{Op::Forward, 1, 0}, 1, 2}, {{Op::FullBackward, 1, 0}, 2, 4}}};
  EXPECT_EQ(grid(timeline),
            "rank 0  F0 .  .  .  B0---\n"
            "rank 1  .  F0 B0---\n");
}

TEST(Grid, MeasuredTimesStartAnywhereAndEverySpanIsSeen) {
  Timeline timeline;
  timeline.ranks = {{{{Op::Forward, 0, 0}, 100.0, 100.9}, {{Op::Forward, 0, 1}, 100.95, 101.05}}};
  EXPECT_EQ(grid(timeline, {.slot = 1}), "rank 0  F0 F1\n");
}

TEST(Grid, StagesAreNamedWhenARankHasSeveral) {
  EXPECT_EQ(grid(from_csv("0F0,3F0\n1F0,2F0\n", "v")),
            "rank 0  0F0 .   .   3F0\n"
            "rank 1  .   1F0 2F0\n");
}

TEST(Grid, ColourIsEscapesAroundTheSameCells) {
  const std::string plain = grid(one_f_one_b(2, 2));
  std::string coloured = grid(one_f_one_b(2, 2), {.ink = Color::Ansi});
  EXPECT_NE(coloured.find("\x1b[38;5;231;48;5;26mF0\x1b[0m"), std::string::npos);
  for (size_t at; (at = coloured.find('\x1b')) != std::string::npos;) {
    coloured.erase(at, coloured.find('m', at) + 1 - at);
  }
  EXPECT_EQ(coloured, plain);
}

TEST(Grid, TheMiddleGivesWayToTheWidth) {
  EXPECT_EQ(grid(gpipe(3, 4), {.width = 34}),
            "rank 0  F0 F1 F2 F3 ... B1 B2 B3\n"
            "rank 1  .  F0 F1 F2 ... B2 B3\n"
            "rank 2  .  .  F0 F1 ... B3\n");
  for (int width = 20; width < 80; ++width) {
    std::istringstream lines(grid(one_f_one_b(4, 12), {.width = width}));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), static_cast<size_t>(width)) << line;
  }
}

// The round in which every rank has its first backward, and the last one.
TEST(Grid, StretchesShowTheFirstRoundAndTheLast) {
  EXPECT_EQ(grid(one_f_one_b(2, 8), {.width = 23, .stretches = 4}),
            "rank 0  F0 F1 .  B0 F2\n"
            "rank 1  .  F0 B0 F1 B1\n"
            "...\n"
            "rank 0  B5 F7 B6 .  B7\n"
            "rank 1  F6 B6 F7 B7\n");
  // All of it, where that is no more; and no more stretches than are allowed.
  const std::string all = grid(gpipe(3, 4), {.width = 34, .stretches = 9});
  EXPECT_EQ(all.find("..."), std::string::npos) << all;
  EXPECT_EQ(std::ranges::count(grid(one_f_one_b(8, 32), {.width = 60, .stretches = 3}), '\n'), 3 * 8 + 2);
  EXPECT_EQ(grid(one_f_one_b(2, 2), {.stretches = 9}), grid(one_f_one_b(2, 2)));
}

TEST(Grid, AFusedPairIsOneCell) {
  const Schedule schedule = from_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n", "fused");
  EXPECT_EQ(grid(schedule),
            "rank 0  F0    .     .     F1&B0 .     .     B1\n"
            "rank 1  .     F0    B0    .     F1    B1\n");
  // Three columns are enough for the words of the pair, so cells stay narrow.
  Timeline timeline;
  timeline.ranks = {{{{Op::Forward, 0, 0}, 0, 1},
                     {{Op::Forward, 0, 1, Fusion::WithNext}, 1, 4},
                     {{Op::FullBackward, 0, 0}, 1, 4},
                     {{Op::FullBackward, 0, 1}, 4, 6}}};
  EXPECT_EQ(grid(timeline), "rank 0  F0 F1&B0--- B1---\n");
  EXPECT_NE(grid(timeline, {.ink = Color::Ansi}).find("\x1b[38;5;231;48;5;97mF1&B0   \x1b[0m"), std::string::npos);
  EXPECT_EQ(grid(from_csv("0F0,1F0,(0F1;1B0)OVERLAP_F_B,1F1\n", "stages")), "rank 0  0F0     1F0     0F1&1B0 1F1\n");
}

TEST(Grid, RecomputeAndUpdateAreDrawnWhereTheyTakeTime) {
  const Schedule schedule = from_csv("0F0,0RECOMPUTE0,0B0,0UPDATE0\n", "all");
  EXPECT_EQ(grid(schedule), "rank 0  F0 B0\n");
  Timeline timeline;
  timeline.ranks = {{{{Op::Forward, 0, 0}, 0, 1},
                     {{Op::Recompute, 0, 0}, 1, 2},
                     {{Op::FullBackward, 0, 0}, 2, 4},
                     {{Op::Update, 0, 0}, 4, 4.125}}};
  EXPECT_EQ(grid(timeline), "rank 0  F0 R0 B0--- U0\n");
}

TEST(Grid, TheMiddleRanksGiveWayToTheHeight) {
  EXPECT_EQ(grid(gpipe(6, 1), {.height = 4}),
            "rank 0  F0 .  .  .  .  .  .  .  .  .  .  B0\n"
            "rank 1  .  F0 .  .  .  .  .  .  .  .  B0\n"
            "...\n"
            "rank 5  .  .  .  .  .  F0 B0\n");
  for (int height = 2; height < 9; ++height) {
    const std::string text = grid(gpipe(7, 2), {.height = height});
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), std::min(7, height));
  }
}

TEST(Grid, ItsSizeIsKnownBeforeItIsDrawn) {
  for (const GridStyle& style : {GridStyle{}, GridStyle{.width = 40}, GridStyle{.height = 3}}) {
    const std::string text = grid(one_f_one_b(4, 12), style);
    EXPECT_LE(static_cast<double>(text.size()), grid_size(unit_time(one_f_one_b(4, 12)), style) + 4);
    EXPECT_GE(static_cast<double>(text.size()), 0.5 * grid_size(unit_time(one_f_one_b(4, 12)), style));
  }
  Timeline uneven;
  uneven.ranks = {{{{Op::Forward, 0, 0}, 0, 1e-300}, {{Op::FullBackward, 0, 0}, 1, 1e15}}};
  EXPECT_NEAR(grid_size(uneven), 3 * std::pow(2, 30), 100);
  EXPECT_EQ(grid(uneven, {.width = 30}), "rank 0  F0 B0--- ... B0---\n");
  EXPECT_EQ(grid(gpipe(2, 1), {.width = std::numeric_limits<int>::max()}), grid(gpipe(2, 1)));
}

TEST(Grid, EmptyIsEmpty) {
  EXPECT_EQ(grid(Timeline{}), "");
  Timeline idle;
  idle.ranks.resize(2);
  EXPECT_EQ(grid(idle), "rank 0\nrank 1\n");
}

}  // namespace
}  // namespace braid::schedule::grid_test
