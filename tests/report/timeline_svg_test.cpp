// The picture of timelines: what is in it, on which scale, and how large it may get.
#include "braid/report/timeline_svg.h"

#include <gtest/gtest.h>

#include <regex>

#include "braid/base/text.h"
#include "tests/support/occurrences.h"

namespace braid::report::timeline_svg_test {
namespace {

schedule::Timeline two_ranks(double origin, double unit) {
  const auto at = [&](Op op, int stage, double begin, double end) {
    return schedule::Span{{op, stage, 0}, origin + unit * begin, origin + unit * end};
  };
  schedule::Timeline timeline;
  timeline.ranks = {{at(Op::Forward, 0, 0, 1), at(Op::RecvBackward, 0, 1, 4), at(Op::FullBackward, 0, 4, 6)},
                    {at(Op::RecvForward, 1, 0, 1), at(Op::Forward, 1, 1, 2), at(Op::FullBackward, 1, 2, 4)}};
  return timeline;
}

struct Box {
  double x, width;
};

std::vector<Box> boxes(const std::string& svg, const std::string& style) {
  std::vector<Box> all;
  const std::regex rect("<rect class=\"" + style + "\" x=\"([0-9.]+)\" y=\"[0-9.]+\" width=\"([0-9.]+)\"");
  for (std::sregex_iterator it(svg.begin(), svg.end(), rect), end; it != end; ++it) {
    all.push_back({std::stod((*it)[1]), std::stod((*it)[2])});
  }
  all.pop_back();  // the legend's
  return all;
}

TEST(TimelineSvg, TitlesLegendAndNumbers) {
  const std::string svg = timeline_svg({{"measured", two_ranks(0, 1e-3)}, {"ideal <b>", two_ranks(0, 1e-3)}});
  EXPECT_EQ(occurrences(svg, "bubble 50.0%, makespan 6 ms"), 2u);
  EXPECT_NE(svg.find("ideal &lt;b&gt;"), svg.npos);
  EXPECT_LT(svg.find(">measured<"), svg.find(">ideal"));
  EXPECT_EQ(occurrences(svg, ">rank 1<"), 2u);
  EXPECT_EQ(occurrences(svg, "class=\"n\""), 8u);
  for (const char* name : {"forward", "backward", "send, receive", "idle"})
    EXPECT_EQ(occurrences(svg, cat(">", name, "<")), 1u);
  EXPECT_EQ(occurrences(svg, "weight gradient"), 0u);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
  EXPECT_EQ(occurrences(svg, "http"), 1u);  // the name space: nothing comes from outside
}

TEST(TimelineSvg, AFusedPairIsOneBox) {
  schedule::Timeline timeline;
  timeline.ranks = {{{{Op::Forward, 0, 7, Fusion::WithNext}, 0, 3},
                     {{Op::FullBackward, 0, 3}, 0, 3},
                     {{Op::Recompute, 0, 4}, 3, 4},
                     {{Op::FullBackward, 0, 4}, 4, 6},
                     {{Op::Update, 0, 4}, 6, 7}}};
  const std::string svg = timeline_svg({{"fused", timeline}}, TimeUnit::Units);
  EXPECT_EQ(boxes(svg, "p").size(), 1u);
  EXPECT_EQ(boxes(svg, "b").size(), 1u);
  EXPECT_EQ(occurrences(svg, "class=\"f\""), 0u);
  EXPECT_NE(svg.find(">7 &amp; 3<"), svg.npos);
  EXPECT_NE(svg.find("bubble 0.0%, makespan 7 units"), svg.npos);
  for (const char* name : {"forward and backward fused", "recompute", "update"}) {
    EXPECT_EQ(occurrences(svg, cat(">", name, "<")), 1u);
  }
}

TEST(TimelineSvg, OneScaleForAll) {
  // The second is half as long and starts elsewhere on the clock.
  const std::string svg = timeline_svg({{"long", two_ranks(1000, 2)}, {"short", two_ranks(7, 1)}}, TimeUnit::Units);
  const std::vector<Box> backward = boxes(svg, "b");
  ASSERT_EQ(backward.size(), 4u);
  const std::vector<Box> forward = boxes(svg, "f");
  EXPECT_NEAR(forward[0].x, forward[2].x, 0.02);
  EXPECT_NEAR(backward[0].width + 1, 2 * (backward[2].width + 1), 0.05);
  EXPECT_NEAR(backward[0].x - forward[0].x, 2 * (backward[2].x - forward[2].x), 0.05);
}

TEST(TimelineSvg, UnitsFollowTheLength) {
  EXPECT_NE(timeline_svg({{"a", two_ranks(0, 1)}}).find("makespan 6 s"), std::string::npos);
  EXPECT_NE(timeline_svg({{"a", two_ranks(0, 1e-6)}}).find("makespan 6 \u00b5s"), std::string::npos);
  EXPECT_NE(timeline_svg({{"a", two_ranks(0, 1)}}, TimeUnit::Units).find("makespan 6 units"), std::string::npos);
}

TEST(TimelineSvg, SizeIsBoundedByThePicture) {
  schedule::Timeline timeline;
  timeline.ranks.resize(2);
  for (auto& spans : timeline.ranks) {
    for (int i = 0; i < 100000; ++i) spans.push_back({{Op::Forward, 0, i}, 1.0 * i, i + 0.5});
  }
  EXPECT_LT(timeline_svg({{"many", timeline}}).size(), 1u << 20);
}

// Rank 1 moves nothing.
schedule::Timeline with_disk(double origin) {
  using schedule::DiskContent, schedule::DiskDirection;
  schedule::Timeline timeline = two_ranks(origin, 1);
  timeline.disk = {{{DiskDirection::Read, DiskContent::Optimizer, 1 << 30, origin + 1, origin + 2},
                    {DiskDirection::Read, DiskContent::Optimizer, 1 << 30, origin + 2, origin + 3},
                    {DiskDirection::Read, DiskContent::Gradients, 1 << 20, origin + 2, origin + 3},
                    {DiskDirection::Write, DiskContent::Optimizer, 1 << 20, origin + 4, origin + 12}}};
  return timeline;
}

TEST(TimelineSvg, ShortTransfersOfManyRanksAreThin) {
  schedule::Timeline timeline;
  timeline.ranks.assign(64, {{{Op::Forward, 0, 0}, 0, 10}});
  timeline.disk.assign(64, {{schedule::DiskDirection::Read, schedule::DiskContent::Optimizer, 4096, 9.999, 10}});
  const std::vector<Box> bars = boxes(timeline_svg({{"many", timeline}}), "ds");
  ASSERT_EQ(bars.size(), 64u);
  for (const Box& bar : bars) EXPECT_LE(bar.width, 1);
}

TEST(TimelineSvg, ReadsAndWritesOfARankAreUnderIt) {
  const std::string svg = timeline_svg({{"measured", with_disk(5)}, {"ideal", two_ranks(0, 1)}});
  EXPECT_EQ(occurrences(svg, ">read<"), 1u);
  EXPECT_EQ(occurrences(svg, ">write<"), 1u);
  EXPECT_NE(svg.find("makespan 6 s, 2.0 GiB read from disk, 1.0 MiB written<"), svg.npos);
  EXPECT_NE(svg.find("<title>read optimizer states: 2.0 GiB, 1.074 GB/s</title>"), svg.npos) << "two that touch";
  EXPECT_NE(svg.find("<title>read gradients: 1.0 MiB, 0.001 GB/s</title>"), svg.npos);
  const std::vector<Box> bars = boxes(svg, "ds"), forward = boxes(svg, "f");
  ASSERT_EQ(bars.size(), 2u);
  EXPECT_NEAR(bars[0].width, 2 * (forward[0].width + 1), 0.05) << "one scale";
  EXPECT_NEAR(bars[1].x + bars[1].width - forward[0].x, 12 * (forward[0].width + 1), 0.1) << "longer than the actions";
  for (const char* name : {"optimizer states", "gradients"}) EXPECT_EQ(occurrences(svg, cat(">", name, "<")), 1u);
  EXPECT_EQ(occurrences(svg, ">activations<"), 0u);
}

TEST(TimelineSvg, TransfersAreAsManyAsThePictureHolds) {
  schedule::Timeline timeline = two_ranks(0, 1);
  timeline.disk.resize(2);
  for (auto& transfers : timeline.disk) {
    for (int i = 0; i < 100000; ++i) {
      transfers.push_back(
          {schedule::DiskDirection::Read, schedule::DiskContent::Optimizer, 4096, 6e-5 * i, 6e-5 * i + 1e-5});
    }
  }
  EXPECT_LT(timeline_svg({{"many", timeline}}).size(), 1u << 20);
}

TEST(TimelineSvg, NothingIsAPictureToo) {
  EXPECT_TRUE(timeline_svg({}).ends_with("</svg>\n"));
  EXPECT_NE(timeline_svg({{"empty", schedule::Timeline{}}}).find("bubble 0.0%"), std::string::npos);
}

}  // namespace
}  // namespace braid::report::timeline_svg_test
