// The page: complete, self-contained, safe and bounded.
#include "braid/report/run_page.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "braid/base/text.h"
#include "braid/report/chart.h"
#include "braid/report/markup.h"
#include "braid/report/run_tables.h"
#include "tests/support/occurrences.h"

namespace braid::report::run_page_test {
namespace {

RunPage sample(int num_steps) {
  RunPage page;
  page.name = "a run";
  page.config_toml =
      "[model]\nfamily = \"gpt2\"\nlayers = 7\n[mesh]\npipe = 2\ndata = 1\ntensor = 1\n[train]\nsteps = 9\n";
  RunRecord& record = page.record;
  record.start = {{"parameters", 1234567}, {"bigram_entropy", 2.5}};
  record.environment = {{"host", "h"}};
  record.first_steps = {0};
  for (int step = 1; step <= num_steps; ++step) {
    const double loss = 2 + 3 * std::exp(-0.1 * step) + 0.01 * std::sin(step);
    for (const char* key :
         {"loss", "learning_rate", "grad_norm", "tokens_per_second", "mfu", "bubble_fraction", "seconds"}) {
      record.steps[key].push_back({1.0 * step, loss});
    }
  }
  record.validation = {{5, 2.25}};
  record.memory = {{"parameters", {1 << 20, 2 << 20}}, {"activations", {3 << 20, 1 << 20}}};
  record.peak_memory = {4 << 20, 3 << 20};
  const schedule::Timeline timeline{{{{{Op::Forward, 0, 0}, 0, 0.01}}, {{{Op::Forward, 1, 0}, 0.01, 0.02}}}};
  page.timelines = {{"measured", timeline}, {"ideal", timeline}};
  return page;
}

TEST(RunPage, HasEverything) {
  const std::string html = run_page(sample(30));
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  for (const char* word : {"1,234,567 parameters", ">Loss<", ">Learning rate<", ">Gradient norm<", ">Throughput<",
                           ">Model-FLOP utilisation<", ">Bubble<", "below the bigram", "measured", "ideal", "rank 1",
                           "4.0 MiB", "activations", "bigram entropy", "training, smoothed", ">host<", ">layers<"}) {
    EXPECT_NE(html.find(word), html.npos) << word;
  }
  EXPECT_LT(html.find(">measured<"), html.find(">ideal<"));
  // layers, pipe and steps are not the defaults; family, data and tensor are.
  for (const char* leaf : {"layers", "pipe", "steps"}) {
    EXPECT_TRUE(std::regex_search(html, std::regex(cat("<tr class=\"changed\"[^>]*><th>", leaf, "</th>")))) << leaf;
  }
  EXPECT_EQ(occurrences(html, "class=\"changed\""), 3u);
  EXPECT_EQ(html.find("nan"), html.npos);
}

TEST(RunPage, NothingComesFromOutside) {
  const std::string html = run_page(sample(30));
  for (const char* word : {"src=", "href=", "url(", "@import", "https:"})
    EXPECT_EQ(occurrences(html, word), 0u) << word;
  EXPECT_EQ(occurrences(html, "http:"), 1u);  // the name space of SVG
}

TEST(RunPage, TagsAreClosed) {
  std::string html = run_page(sample(30));
  html.erase(html.find("<script>"), html.find("</script>") - html.find("<script>"));
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z0-9]+)[^>]*?(/?)>");
  for (std::sregex_iterator it(html.begin(), html.end(), tag), end; it != end; ++it) {
    const std::string name = (*it)[2];
    if ((*it)[3].length() > 0 || name == "meta" || name == "script") continue;
    if ((*it)[1].length() == 0) {
      open.push_back(name);
    } else {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), name) << it->position();
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(RunPage, TextOfTheRunIsEscaped) {
  const std::string evil = "<script>alert(\"x\")</script>&";
  RunPage page = sample(3);
  page.name = evil;
  page.config_toml = "[model]\nfamily = '" + evil +
                     "'\n\""
                     "<b>\" = 1\n[\"<i>\"]\nx = 1\n";
  page.record.environment = {{evil, evil}};
  page.record.peak_source = evil;
  page.record.peak_flops = 1e9;
  page.record.memory = {{evil, {1, 2}}};
  page.record.checkpoints = {{1, evil}};
  page.record.layer_grad_norms = {{evil, {{1, 2}}}};
  page.timelines[0].name = evil;
  const std::string html = run_page(page);
  EXPECT_EQ(occurrences(html, "<script>"), 1u);
  EXPECT_EQ(occurrences(html, "alert(\""), 0u);
  EXPECT_EQ(occurrences(html, "<b>"), 0u);
  EXPECT_EQ(occurrences(html, "<i>"), 0u);
}

TEST(RunPage, SizeIsBounded) { EXPECT_LT(run_page(sample(300000)).size(), 1u << 20); }

TEST(RunPage, WhatIsNotThereIsLeftOut) {
  const std::string html = run_page(RunPage{});
  EXPECT_NE(html.find("No step has been logged yet."), html.npos);
  EXPECT_EQ(occurrences(html, "<svg"), 0u);
  EXPECT_EQ(html.find("Memory"), html.npos);
  RunPage page = sample(1);
  page.record.first_steps = {0, 1};
  EXPECT_NE(run_page(page).find("Started 2 times, again after step 1;"), std::string::npos);
  page.config_toml = "[[[ <no toml>";
  EXPECT_NE(run_page(page).find("<pre>[[[ &lt;no toml&gt;</pre>"), std::string::npos);
}

// Steps that were not logged count too.
TEST(RunPage, TimeInStepsIsOfAllSteps) {
  RunPage page;
  page.record.first_steps = {10};
  page.record.steps["seconds"] = {{15, 2.0}, {20, 4.0}};
  EXPECT_NE(run_page(page).find("about 30s</div><div class=\"more\">by 2 of 10 steps, which were logged"),
            std::string::npos);
  page.record.first_steps = {18};
  page.record.steps["seconds"] = {{19, 2.0}, {20, 4.0}};
  EXPECT_NE(run_page(page).find(">6s</div><div class=\"more\">all 2 of them"), std::string::npos);
}

TEST(RunPage, NormsOfLayersStandInModelOrder) {
  RunPage page = sample(3);
  EXPECT_EQ(run_page(page).find("by layer"), std::string::npos);
  page.record.layer_grad_norms = {{"embedding", {{1, 8}, {2, 2}, {3, 4}}}, {"blocks.0", {}}, {"head", {{3, 0.0625}}}};
  const std::string html = run_page(page);
  EXPECT_NE(html.find("<tr><th>embedding</th><td>4, at most 8</td></tr>\n<tr><th>head</th><td>0.0625, at most 0.0625"
                      "</td></tr>"),
            html.npos);
}

TEST(RunPage, WhatCouldNotBeReadIsSaidOnTop) {
  RunPage page = sample(3);
  page.config_toml = "";
  page.faults = {"config.toml is missing", "b < a"};
  const std::string html = run_page(page);
  EXPECT_NE(html.find("<p class=\"lead\">1,234,567 parameters \u00b7 step 3</p>\n"
                      "<p class=\"fault\">config.toml is missing</p>\n<p class=\"fault\">b &lt; a</p>"),
            html.npos);
  EXPECT_EQ(html.find("Configuration"), html.npos);
  EXPECT_NE(html.find(">Loss<"), html.npos);
}

// Both numbers are of the step that is drawn: what is above them is the median of many.
TEST(RunPage, TheBubbleWithoutWaitingStandsBesideTheOneItIsLessThan) {
  RunPage page = sample(3);
  page.timelines[0].timeline.ranks[1][0].begin = 0.02;
  page.timelines[0].timeline.ranks[1][0].end = 0.03;
  EXPECT_NE(run_page(page).find("last step 66.7 %, without waiting 50.0 %"), std::string::npos);
}

TEST(RunPage, TilesAreOfTheLastStart) {
  RunPage page = sample(30);
  for (Point& point : page.record.steps["bubble_fraction"]) point.y = point.x > 20 ? 0.5 : 0;
  page.record.first_steps = {0, 20};
  EXPECT_NE(run_page(page).find("50.0 <small>%"), std::string::npos);
  page.record.first_steps = {0, 30};  // it has made no step
  EXPECT_NE(run_page(page).find("0.0 <small>%"), std::string::npos);
}

TEST(RunPage, NatsPerByteAreShownWhereTokensAreNotBytes) {
  RunPage page = sample(3);
  page.record.validation_per_byte = {{5, 0.5}};
  EXPECT_NE(run_page(page).find("<div class=\"value\">0.5000</div><div class=\"more\">nats per byte of text"),
            std::string::npos);
  page.config_toml += "[data]\ntokenizer = \"bytes\"\n";
  EXPECT_EQ(run_page(page).find("nats per byte"), std::string::npos);
}

// A loss of 0 and 6 in turns: the mean of five values is 12/5 or 18/5. At the ends there are fewer neighbours.
TEST(RunPage, ASmoothedCurveByHand) {
  RunPage page;
  page.record.first_steps = {0};
  for (int step = 0; step < 20; ++step) page.record.steps["loss"].push_back({1.0 * step, step % 2 == 0 ? 0.0 : 6.0});
  const std::string html = run_page(page);
  std::smatch axis, path;
  ASSERT_TRUE(std::regex_search(html, axis, std::regex("data-y=\"(\\S+) (\\S+)\" data-scale=\"linear\"")));
  ASSERT_TRUE(std::regex_search(html, path, std::regex("data-name=\"training, smoothed\" d=\"([^\"]+)\"")));
  const double low = std::stod(axis[1]), high = std::stod(axis[2]);
  const std::string points = path[1];
  const std::regex point("[ML]\\S+ ([0-9.]+)");
  std::vector<double> drawn;  // a path has 0 at the top and 1000 at the bottom
  for (std::sregex_iterator i(points.begin(), points.end(), point), none; i != none; ++i)
    drawn.push_back(high - (high - low) * std::stod((*i)[1]) / 1000);
  std::vector<double> wanted{0, 2};
  for (int step = 2; step < 18; ++step) wanted.push_back(step % 2 == 0 ? 2.4 : 3.6);
  wanted.insert(wanted.end(), {3, 4});
  ASSERT_EQ(drawn.size(), wanted.size()) << points;
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(drawn[i], wanted[i], 1e-3) << i;
}

TEST(Chart, ACurveByHand) {
  Chart chart{.title = "T", .unit = "u"};
  chart.curves = {{"c", {{0, 0}, {5, 10}, {10, 5}}, Stroke::Main, Marks::None}};
  chart.base = Base::Zero;
  const std::string html = chart_figure(chart);
  // The value axis ends at 10.5.
  EXPECT_NE(html.find("d=\"M0 1000L500 47.62L1000 523.81\""), html.npos) << html;
  EXPECT_NE(html.find("data-x=\"0 10\" data-y=\"0 10.5\" data-scale=\"linear\""), html.npos);
  EXPECT_EQ(occurrences(html, "class=\"legend\""), 0u);  // one curve needs none
  EXPECT_EQ(chart_figure({.title = "T", .unit = "", .curves = {{"none", {}}}}), "");
}

TEST(Chart, SqueezedValuesGetALogScale) {
  Series series;
  for (int i = 0; i < 100; ++i) series.push_back({1.0 * i, i == 0 ? 100.0 : 1.0});
  Chart chart{.title = "T", .unit = "", .curves = {{"c", series}}};
  EXPECT_NE(chart_figure(chart).find("data-scale=\"log\""), std::string::npos);
  chart.curves[0].points[0].y = 5;
  EXPECT_NE(chart_figure(chart).find("data-scale=\"linear\""), std::string::npos);
}

TEST(MemoryBars, WidthsByHand) {
  const std::string html = memory_bars({{{"a", {30, 10}}, {"b", {70, 20}}}, {80, 30}});
  EXPECT_EQ(occurrences(html, "<i class=\"m0\" style=\"width:30%\""), 1u);
  EXPECT_EQ(occurrences(html, "<i class=\"m1\" style=\"width:70%\""), 1u);
  EXPECT_EQ(occurrences(html, "<b style=\"left:80%\">"), 1u);
  EXPECT_EQ(occurrences(html, "<b style=\"left:30%\">"), 1u);
  EXPECT_EQ(memory_bars({}), "");
}

TEST(MemoryBars, ManyRanksAreTheFullest) {
  MemoryBars memory{{{"a", {}}}, {}};
  for (int rank = 0; rank < 1000; ++rank) memory.categories[0].second.push_back(rank);
  const std::string html = memory_bars(memory);
  EXPECT_EQ(occurrences(html, "class=\"stack\""), kMostBars);
  EXPECT_EQ(html.find("rank 935<"), html.npos);
  EXPECT_LT(html.find("rank 936<"), html.find("rank 999<"));
}

TEST(Markup, Numbers) {
  EXPECT_EQ(short_number(950), "950");
  EXPECT_EQ(short_number(1813.4), "1813");
  EXPECT_EQ(short_number(45210), "45.2k");
  EXPECT_EQ(short_number(999600), "1.00M");
  EXPECT_EQ(short_number(2345678), "2.35M");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(3e-5), "3.00e-05");
  EXPECT_EQ(flops_text(9.04e10), "90.4 GFLOP/s");
  EXPECT_EQ(flops_text(950), "950 FLOP/s");
  EXPECT_EQ(flops_text(9.8955e14), "990 TFLOP/s");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(coordinate(-0.001), "0");
}

}  // namespace
}  // namespace braid::report::run_page_test
