// The message about a configuration, for tables of bad inputs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "braid/spec/fields.h"
#include "braid/spec/parse.h"

namespace braid {

struct Case {
  std::string toml;                // without [data] paths, which is added unless the text has a [data] of its own
  std::vector<std::string> words;  // overrides
  std::string complaint;           // "..." at its end stands for the TOML library's own words
};

inline std::string run_text(const Case& given) {
  return (given.toml.find("[data]") == std::string::npos ? "data.paths = [\"corpus.txt\"]\n" : "") + given.toml;
}

inline std::vector<Problem> problems_of(const Case& given, const spec::HostLimits& limits = {}) {
  try {
    spec::parse_run(run_text(given), "run.toml", given.words, limits);
    return {};
  } catch (const ConfigError& error) {
    return error.problems();
  }
}

// Every nearest value of a field, given as an override, repairs its key. Keys with several problems are left to the
// tests that apply one repair after another.
inline void expect_repairs(const Case& given, const spec::HostLimits& limits = {}) {
  const auto found = problems_of(given, limits);
  for (const auto& problem : found) {
    const auto same_key = [&](const Problem& other) { return other.key == problem.key; };
    if (problem.nearest.empty() || !spec::find_field(problem.key)) continue;
    if (std::count_if(found.begin(), found.end(), same_key) > 1) continue;
    Case repaired = given;
    repaired.words.push_back(problem.key + "=" + problem.nearest);
    const auto left = problems_of(repaired, limits);
    EXPECT_TRUE(std::none_of(left.begin(), left.end(), same_key)) << text(problem);
  }
}

inline void expect_complaints(const std::vector<Case>& cases, const spec::HostLimits& limits = {}) {
  for (const auto& given : cases) {
    std::string said = "accepted";
    auto found = problems_of(given, limits);
    for (Problem& problem : found) problem.place.clear();  // place_test.cpp looks at them
    if (!found.empty()) said = ConfigError(found).what();
    std::string expected = given.complaint;
    if (expected.ends_with("...")) {
      expected.resize(expected.size() - 3);
      said = said.substr(0, expected.size());
    }
    EXPECT_EQ(said, expected) << given.toml << testing::PrintToString(given.words);
    expect_repairs(given, limits);
  }
}

// Returns the rule of pipeline.schedule.
inline std::string schedules() {
  return "\"naive\", \"gpipe\", \"1f1b\", \"interleaved\", \"looped-bfs\", \"zb-h1\", \"zb-h2\", "
         "\"interleaved-zb\", \"zb-v\", \"dualpipev\", \"dualpipe\", \"zb-1p\", \"zb-2p\", \"v-half\", \"v-min\", "
         "\"pipedream\", \"pipedream-2bw\" or file:...";
}

}  // namespace braid
