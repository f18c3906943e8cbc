// Numbers to words.
#include "braid/cli/simulate_output.h"

#include <algorithm>
#include <functional>

#include "braid/base/text.h"
#include "braid/report/metrics_line.h"
#include "braid/schedule/program_text.h"

namespace braid {
namespace {

// "8" when all are alike, "4 3 2 1" else.
std::string per_rank(const std::vector<int>& values) {
  const bool alike = std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
  if (alike && !values.empty()) return std::to_string(values[0]);
  constexpr size_t kShown = 16;
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(values.size(), kShown); ++i) words.push_back(std::to_string(values[i]));
  return joined(words, " ") + (values.size() > kShown ? " ..." : "");
}

// At most six decimals, no trailing zeros.
std::string number(double value) {
  std::string digits = fixed(value, 6);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

}  // namespace

std::string summary_text(const std::vector<Played>& all) {
  struct Quantity {
    const char* name;
    std::string (*value)(const Summary&);
  };
  static constexpr Quantity kQuantities[] = {
      {"makespan", [](const Summary& s) { return number(s.makespan); }},
      {"bubble time", [](const Summary& s) { return number(s.bubble_time); }},
      {"bubble fraction", [](const Summary& s) { return fixed(100 * s.bubble_fraction, 2) + " %"; }},
      {"span bubble", [](const Summary& s) { return number(s.span_bubble); }},
      {"bubble rate", [](const Summary& s) { return fixed(s.bubble_rate, 4); }},
      {"peak activations", [](const Summary& s) { return per_rank(s.peak_activations); }},
      {"peak pending weight grads", [](const Summary& s) { return per_rank(s.peak_pending_weight_grads); }},
      {"weight versions", [](const Summary& s) { return std::to_string(s.weight_versions); }},
  };
  std::vector<std::string> lines;
  if (all.size() > 1) lines.emplace_back();  // names of the schedules
  for (const auto& quantity : kQuantities) lines.emplace_back(quantity.name);
  for (const auto& played : all) {
    size_t widest = 0;
    for (const auto& line : lines) widest = std::max(widest, line.size());
    size_t row = 0;
    const auto put = [&](const std::string& value) {
      lines[row].append(widest + 2 - lines[row].size(), ' ');
      lines[row++] += value;
    };
    if (all.size() > 1) put(played.schedule.name);
    for (const auto& quantity : kQuantities) put(quantity.value(played.summary));
  }
  return joined(lines, "\n") + "\n";
}

void write_json(std::ostream& out, const Played& played) {
  const Schedule& schedule = played.schedule;
  const Summary& s = played.summary;
  MetricsLine line;
  line.add("schedule", schedule.name).add("ranks", schedule.num_ranks());
  line.add("chunks", schedule.num_stages / schedule.num_ranks()).add("stages", schedule.num_stages);
  line.add("microbatches", schedule.num_microbatches).add("makespan", s.makespan);
  line.add("bubble_time", s.bubble_time).add("bubble_fraction", s.bubble_fraction);
  line.add("span_bubble", s.span_bubble).add("bubble_rate", s.bubble_rate);
  line.add("peak_activations", s.peak_activations).add("peak_pending_weight_grads", s.peak_pending_weight_grads);
  line.add("weight_versions", s.weight_versions);
  std::string head = line.text();
  head.pop_back();
  out << head << ",\"programs\":[";
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    out << (rank > 0 ? ",\"" : "\"") << text(schedule.programs[rank]) << '"';  // words need no escapes
  }
  out << "]}\n";
}

std::string heading(const Played& played) {
  return cat(played.schedule.name, ", ", played.schedule.num_ranks(), " ranks, ", played.schedule.num_microbatches,
             " microbatches");
}

}  // namespace braid
