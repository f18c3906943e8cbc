// The times of actions, and the reader of stage times.
#include "braid/schedule/cost_model.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::schedule {

double CostModel::compute(const Action& action) const {
  const StageTimes times = stages.empty() ? StageTimes{forward, input_grad, weight_grad, recompute, update}
                                          : stages.at(static_cast<size_t>(action.stage));
  switch (action.op) {
    case Op::Forward:
      return times.forward;
    case Op::FullBackward:
      return times.input_grad + times.weight_grad;
    case Op::InputGrad:
      return times.input_grad;
    case Op::WeightGrad:
      return times.weight_grad;
    case Op::Recompute:
      return times.recompute.value_or(times.forward);
    case Op::Update:
      return times.update;
    default:
      return 0;
  }
}

double CostModel::compute_pair(const Action& forward, const Action& backward) const {
  return overlapped.value_or(compute(forward) + compute(backward));
}

CostModel with_share(CostModel cost, double share) {
  check(cost.stages.empty(), "times of single stages are of those stages, not of a share of others");
  for (double* time : {&cost.forward, &cost.input_grad, &cost.weight_grad, &cost.update}) *time *= share;
  for (std::optional<double>* time : {&cost.overlapped, &cost.recompute}) {
    if (*time) **time *= share;
  }
  return cost;
}

namespace {

constexpr size_t kFewest = 3;
constexpr size_t kMost = 5;

std::vector<std::string> words_of(std::string line) {
  line.resize(std::min(line.find('#'), line.size()));
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// Returns the time, or -1 if the word is not a time.
double time_of(const std::string& word) {
  double value = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc{} && end == word.data() + word.size();
  return whole && value >= 0 && value <= kMostTime ? value : -1;
}

}  // namespace

std::vector<StageTimes> parse_stage_times(std::string_view text, const std::string& origin) {
  std::vector<StageTimes> stages;
  std::vector<Problem> problems;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    const std::string place = cat(origin, ":", number);
    if (words.size() < kFewest || words.size() > kMost) {
      problems.push_back({place, joined(words, " "), "must be 3 to 5 times of a stage", ""});
    }
    std::vector<double> times;
    for (const auto& word : words) {
      times.push_back(time_of(word));
      if (times.back() < 0)
        problems.push_back({place, word, cat("must be a time, a number from 0 to ", exact(kMostTime)), ""});
    }
    times.resize(kMost, -1);
    StageTimes stage{times[0], times[1], times[2], {}, std::max(0.0, times[4])};
    if (times[3] >= 0) stage.recompute = times[3];
    stages.push_back(stage);
  }
  if (stages.empty()) problems.push_back({origin, "", "has no line with times", ""});
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return stages;
}

}  // namespace braid::schedule
