// Numbers to words.
#include "braid/cli/simulate_output.h"

#include <algorithm>
#include <functional>

#include "braid/base/counted.h"
#include "braid/base/text.h"
#include "braid/report/metrics_line.h"
#include "braid/schedule/program_text.h"

namespace braid::cli {
namespace {

// At most six decimals, no trailing zeros.
std::string number(double value) {
  std::string digits = fixed(value, 6);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

double share_of(const Played& played) { return played.stage_share.value_or(1); }

// "8" when all are alike, "4 3 2 1" else; each times `share`.
std::string per_rank(const std::vector<int>& values, double share) {
  const bool alike = std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
  if (alike && !values.empty()) return number(values[0] * share);
  constexpr size_t kShown = 16;
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(values.size(), kShown); ++i) words.push_back(number(values[i] * share));
  return joined(words, " ") + (values.size() > kShown ? " ..." : "");
}

constexpr const char* kSameModel =
    "All run the same model: with v stages on a rank a stage takes 1/v of the rank's times, and peaks are in "
    "microbatches "
    "of all its layers.\n";

}  // namespace

std::string summary_text(const std::vector<Played>& all) {
  struct Quantity {
    const char* name;
    std::string (*value)(const Played&);
  };
  static constexpr Quantity kQuantities[] = {
      {"makespan", [](const Played& p) { return number(p.summary.makespan); }},
      {"bubble time", [](const Played& p) { return number(p.summary.bubble_time); }},
      {"bubble fraction", [](const Played& p) { return fixed(100 * p.summary.bubble_fraction, 2) + " %"; }},
      {"span bubble", [](const Played& p) { return number(p.summary.span_bubble); }},
      {"bubble rate", [](const Played& p) { return fixed(p.summary.bubble_rate, 4); }},
      {"peak activations", [](const Played& p) { return per_rank(p.summary.peak_activations, share_of(p)); }},
      {"peak pending weight grads",
       [](const Played& p) { return per_rank(p.summary.peak_pending_weight_grads, share_of(p)); }},
      {"weight versions", [](const Played& p) { return std::to_string(p.summary.weight_versions); }},
  };
  std::vector<std::string> lines;
  if (all.size() > 1) lines.emplace_back();  // names of the schedules
  for (const auto& quantity : kQuantities) lines.emplace_back(quantity.name);
  bool shares = false;  // some rank has several stages
  for (const auto& played : all) {
    shares = shares || share_of(played) != 1;
    size_t widest = 0;
    for (const auto& line : lines) widest = std::max(widest, line.size());
    size_t row = 0;
    const auto put = [&](const std::string& value) {
      lines[row].append(widest + 2 - lines[row].size(), ' ');
      lines[row++] += value;
    };
    if (all.size() > 1) put(played.schedule.name);
    for (const auto& quantity : kQuantities) put(quantity.value(played));
  }
  return joined(lines, "\n") + "\n" + (shares ? kSameModel : "");
}

void write_json(std::ostream& out, const Played& played) {
  const Schedule& schedule = played.schedule;
  const schedule::Summary& s = played.summary;
  report::MetricsLine line;
  line.add("schedule", schedule.name).add("ranks", schedule.num_ranks());
  line.add("chunks", schedule.num_stages / schedule.num_ranks()).add("stages", schedule.num_stages);
  line.add("microbatches", schedule.num_microbatches).add("makespan", s.makespan);
  line.add("bubble_time", s.bubble_time).add("bubble_fraction", s.bubble_fraction);
  line.add("span_bubble", s.span_bubble).add("bubble_rate", s.bubble_rate);
  line.add("peak_activations", s.peak_activations).add("peak_pending_weight_grads", s.peak_pending_weight_grads);
  line.add("weight_versions", s.weight_versions);
  if (played.stage_share) line.add("stage_share", *played.stage_share);
  std::string head = line.text();
  head.pop_back();
  out << head << ",\"programs\":[";
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    out << (rank > 0 ? ",\"" : "\"") << schedule::text(schedule.programs[rank]) << '"';  // words need no escapes
  }
  out << "]}\n";
}

std::string heading(const Played& played) {
  return cat(played.schedule.name, ", ", counted(played.schedule.num_ranks(), "rank"), ", ",
             counted(played.schedule.num_microbatches, "microbatch"));
}

}  // namespace braid::cli
