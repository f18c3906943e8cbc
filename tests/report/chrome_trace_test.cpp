// The trace as text, as JSON, and read back.
#include "braid/report/chrome_trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "braid/base/errors.h"

namespace braid::report::chrome_trace_test {
namespace {

using Json = nlohmann::json;

NamedTimeline two_ranks() {
  return {"measured \"now\"",
          {{{{{Op::Forward, 0, 0}, 7, 7.0015}, {{Op::SendForward, 0, 0}, 7.0015, 7.0016}},
            {{{Op::Forward, 1, 0}, 7.0016, 7.002}, {{Op::ReduceGrad, 1, -1}, 7.002, 7.00200005}}}}};
}

TEST(ChromeTrace, Text) {
  EXPECT_EQ(chrome_trace({two_ranks()}),
            R"({"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"measured \"now\""}},
{"ph":"M","name":"process_sort_index","pid":0,"args":{"sort_index":0}},
{"ph":"M","name":"thread_name","pid":0,"tid":0,"args":{"name":"rank 0"}},
{"ph":"X","name":"forward 0","cat":"compute","cname":"thread_state_running","pid":0,"tid":0,"ts":0.000,"dur":1500.000,"args":{"action":"0F0","stage":0,"microbatch":0}},
{"ph":"X","name":"send activations 0","cat":"transfer","cname":"grey","pid":0,"tid":0,"ts":1500.000,"dur":100.000,"args":{"action":"0SEND_F0","stage":0,"microbatch":0}},
{"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"rank 1"}},
{"ph":"X","name":"forward 0","cat":"compute","cname":"thread_state_running","pid":0,"tid":1,"ts":1600.000,"dur":400.000,"args":{"action":"1F0","stage":1,"microbatch":0}},
{"ph":"X","name":"reduce gradients","cat":"reduction","cname":"yellow","pid":0,"tid":1,"ts":2000.000,"dur":0.050,"args":{"action":"1REDUCE_GRAD","stage":1,"microbatch":-1}}
]}
)");
}

// A transfer that goes on beside a forward, and another beside that one.
NamedTimeline overlapping() {
  return {"o",
          {{{{{Op::Forward, 0, 0}, 0, 1},
             {{Op::SendForward, 0, 0}, 1, 3},
             {{Op::Forward, 0, 1}, 1, 2},
             {{Op::SendForward, 0, 1}, 2, 4},
             {{Op::Forward, 0, 2}, 2, 3}}}}};
}

TEST(ChromeTrace, SpansOfAThreadDoNotOverlap) {
  std::map<int, std::vector<std::pair<double, double>>> threads;
  std::map<int, std::string> names;
  const Json trace = Json::parse(chrome_trace({overlapping()}));
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") names[event["tid"]] = event["args"]["name"];
    if (event["ph"] == "X")
      threads[event["tid"]].push_back({event["ts"], event["ts"].get<double>() + event["dur"].get<double>()});
  }
  EXPECT_EQ(threads[0].size(), 3u);  // the forwards
  EXPECT_EQ(names, (std::map<int, std::string>{{0, "rank 0"}, {1, "rank 0 transfers"}, {2, "rank 0 transfers"}}));
  for (const auto& [id, spans] : threads) {
    for (size_t i = 1; i < spans.size(); ++i) EXPECT_GE(spans[i].first, spans[i - 1].second) << id;
  }
}

TEST(ChromeTrace, AFusedPairIsOneEvent) {
  const NamedTimeline fused{"f",
                            {{{{{Op::Forward, 0, 0}, 0, 1},
                               {{Op::Forward, 0, 1, Fusion::WithNext}, 1, 3},
                               {{Op::FullBackward, 7, 0}, 1, 3},
                               {{Op::Update, 7, 0}, 3, 4}}}}};
  const std::string trace = chrome_trace({fused});
  EXPECT_NE(trace.find(R"("name":"forward 1 + backward 0")"), trace.npos);
  EXPECT_NE(trace.find(R"("action":"(0F1;7B0)OVERLAP_F_B")"), trace.npos);
  EXPECT_EQ(trace.find("transfers"), trace.npos);
  const std::vector<schedule::Span> read = parse_chrome_trace(trace, "trace.json")[0].timeline.ranks[0];
  ASSERT_EQ(read.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(read[i].action, fused.timeline.ranks[0][i].action);
  EXPECT_EQ(schedule::busy(read), 4);
}

TEST(ChromeTrace, RoundingMakesNoOverlap) {
  NamedTimeline thirds{"t", {{{}}}};
  for (int i = 0; i < 1000; ++i)
    thirds.timeline.ranks[0].push_back({{Op::Forward, 0, i}, i * 1e-5 / 3, (i + 1) * 1e-5 / 3});
  int64_t end = 0;
  const Json trace = Json::parse(chrome_trace({thirds}));
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const int64_t begin = std::llround(1e3 * event["ts"].get<double>());
    ASSERT_EQ(begin, end);
    end = begin + std::llround(1e3 * event["dur"].get<double>());
  }
}

// Nanoseconds of a simulated step may be more than an integer holds.
TEST(ChromeTrace, LongTimesAreTimes) {
  const NamedTimeline ages{"t", {{{{{Op::Forward, 0, 0}, 0, 1e15}, {{Op::FullBackward, 0, 0}, 1e15, 3e15}}}}};
  const std::vector<schedule::Span> read = parse_chrome_trace(chrome_trace({ages}), "trace.json")[0].timeline.ranks[0];
  EXPECT_EQ(read[1].begin, 1e15);
  EXPECT_EQ(read[1].end, 3e15);
}

TEST(ChromeTrace, ReadsBackWhatItWrote) {
  const auto all = parse_chrome_trace(chrome_trace({two_ranks(), overlapping()}), "trace.json");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, two_ranks().name);
  ASSERT_EQ(all[0].timeline.ranks.size(), 2u);
  EXPECT_EQ(all[0].timeline.ranks[1][1].action, (Action{Op::ReduceGrad, 1, -1}));
  EXPECT_NEAR(all[0].timeline.ranks[1][0].begin, 0.0016, 1e-9);
  EXPECT_NEAR(all[0].timeline.makespan(), 0.00200005, 1e-9);
  EXPECT_EQ(all[1].timeline.ranks.size(), 1u);
  EXPECT_EQ(all[1].timeline.ranks[0].size(), 5u);
  EXPECT_NEAR(all[1].timeline.bubble_fraction(), 0.25, 1e-9);
}

TEST(ChromeTrace, DiskTransfersOfAContentAreAThread) {
  using schedule::DiskContent, schedule::DiskDirection;
  NamedTimeline two = two_ranks();
  two.timeline.disk = {{{DiskDirection::Read, DiskContent::Optimizer, 4096, 6.999, 7.0001},
                        {DiskDirection::Read, DiskContent::Gradients, 8192, 7, 7.0005},
                        {DiskDirection::Read, DiskContent::Optimizer, 4096, 7.0001, 7.0003},
                        {DiskDirection::Read, DiskContent::Optimizer, 1024, 7.0004, 7.0006},
                        {DiskDirection::Write, DiskContent::Optimizer, 4096, 7.0004, 7.0007}}};
  const std::string trace = chrome_trace({two});
  for (const char* name : {"rank 0 read optimizer", "rank 0 read gradients", "rank 0 write optimizer"})
    EXPECT_NE(trace.find(name), trace.npos) << name;
  EXPECT_NE(trace.find(R"("ts":0.000,"dur":1300.000,"args":{"disk":"read","content":"optimizer","bytes":8192})"),
            trace.npos);
  const schedule::Timeline read = parse_chrome_trace(trace, "trace.json")[0].timeline;
  ASSERT_EQ(read.disk.size(), 1u);
  ASSERT_EQ(read.disk[0].size(), 4u) << "those that touch are one";
  EXPECT_EQ(read.disk[0][1].content, DiskContent::Gradients);
  EXPECT_EQ(read.disk[0][3].direction, DiskDirection::Write);
  EXPECT_EQ(read.disk[0][2].bytes, 1024);
  EXPECT_NEAR(read.disk[0][3].end, 0.0017, 1e-9);
  EXPECT_NEAR(read.ranks[0][0].begin, 0.001, 1e-9) << "a transfer began before";
}

TEST(ChromeTrace, WhatIsNoTraceIsNamed) {
  for (
      const char* text :
      {"", "{", "[]", "{\"traceEvents\":[{}]}", R"({"traceEvents":[{"ph":"X","name":"a","pid":0}]})",
       R"({"traceEvents":[{"ph":"M","name":"process_name","pid":-1,"args":{"name":"a"}}]})",
       R"({"traceEvents":[{"ph":"M","name":"thread_name","pid":0,"tid":0,"args":{"name":"rank 0 read optimizer"}},)"
       R"({"ph":"X","name":"a","pid":0,"tid":0,"ts":0,"dur":1,"args":{"disk":"read","content":"dust","bytes":1}}]})"}) {
    try {
      parse_chrome_trace(text, "there/trace.json");
      ADD_FAILURE() << text;
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string(error.what()).find("there/trace.json:"), 0u) << error.what();
      EXPECT_EQ(std::string(error.what()).find("json.exception"), std::string::npos) << error.what();
    }
  }
}

TEST(ChromeTrace, ANulEndsNoTrace) {
  using namespace std::string_literals;
  EXPECT_THROW(parse_chrome_trace("{\"traceEvents\":[]}\0x"s, "trace.json"), ConfigError);
}

TEST(ChromeTrace, NothingIsATraceToo) {
  EXPECT_TRUE(Json::parse(chrome_trace({}))["traceEvents"].empty());
  EXPECT_TRUE(parse_chrome_trace(chrome_trace({}), "").empty());
}

}  // namespace
}  // namespace braid::report::chrome_trace_test
