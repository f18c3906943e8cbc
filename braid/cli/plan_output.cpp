// Formats a plan as a table of layouts and sentences about each layout.
#include "braid/cli/plan_output.h"

#include <algorithm>
#include <functional>
#include <ranges>

#include "braid/base/text.h"
#include "braid/plan/cluster.h"
#include "braid/plan/search.h"
#include "braid/report/markup.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/partition.h"

namespace braid::cli {
namespace {

std::string bytes_text(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// Returns the recompute policy; "by stage" for a list of policies, which is shown among the overrides.
std::string recompute_text(const std::string& policies) {
  return policies.find(',') == std::string::npos ? policies : "by stage";
}

// Returns the ZeRO stage; "3/8" is stage 3 in groups of eight ranks.
std::string zero_text(const SyncSpec& sync) {
  return sync.zero_group == 0 ? cat(sync.zero) : cat(sync.zero, "/", sync.zero_group);
}

// Returns the range of a step's seconds, "1.2-2.9"; empty if the rates were measured.
std::string range_text(const plan::Prediction& prediction) {
  if (prediction.range.is_known()) return "";
  const double seconds = prediction.step_seconds();
  return cat(report::short_number(prediction.range.least * seconds), "-",
             report::short_number(prediction.range.most * seconds));
}

// Returns the context ranks and how they compute attention, "2 ring".
std::string context_text(const MeshSpec& mesh) {
  return mesh.context == 1 ? "1" : cat(mesh.context, " ", mesh.context_parallel);
}

// A column of the table. It is left out if all layouts have the value `usual`.
struct PlanColumn {
  const char* title;
  std::string (*value)(const plan::PlannedLayout&);
  const char* usual = "";
};
constexpr PlanColumn kPlanColumns[] = {
    {"pipe", [](const plan::PlannedLayout& l) { return cat(l.spec.mesh.pipe); }},
    {"data", [](const plan::PlannedLayout& l) { return cat(l.spec.mesh.data); }},
    {"tensor", [](const plan::PlannedLayout& l) { return cat(l.spec.mesh.tensor); }},
    {"sequence parallel",
     [](const plan::PlannedLayout& l) { return std::string(l.spec.mesh.sequence_parallel ? "yes" : "no"); }, "no"},
    {"context", [](const plan::PlannedLayout& l) { return context_text(l.spec.mesh); }, "1"},
    {"zero", [](const plan::PlannedLayout& l) { return zero_text(l.spec.sync); }},
    {"schedule", [](const plan::PlannedLayout& l) { return l.spec.mesh.pipe > 1 ? l.spec.pipeline.schedule : "-"; }},
    {"chunks", [](const plan::PlannedLayout& l) { return cat(spec::chunks_per_rank(l.spec.pipeline)); }},
    {"microbatch", [](const plan::PlannedLayout& l) { return cat(l.spec.train.microbatch); }},
    {"recompute", [](const plan::PlannedLayout& l) { return recompute_text(l.spec.memory.recompute); }},
    {"step s", [](const plan::PlannedLayout& l) { return report::short_number(l.prediction.step_seconds()); }},
    {"range", [](const plan::PlannedLayout& l) { return range_text(l.prediction); }},
    {"mfu", [](const plan::PlannedLayout& l) { return report::percent(l.prediction.mfu); }},
    {"bubble", [](const plan::PlannedLayout& l) { return report::percent(l.prediction.bubble); }},
    {"memory", [](const plan::PlannedLayout& l) { return bytes_text(l.prediction.most_bytes()); }},
    {"tokens/s/device",
     [](const plan::PlannedLayout& l) { return report::short_number(l.prediction.tokens_per_second_per_device); }},
    {"goodput", [](const plan::PlannedLayout& l) { return report::percent(l.prediction.goodput); }},
};

// Returns the rows as text. Columns are right-aligned and as wide as their widest cell.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string all;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) all += std::string(widths[i] - row[i].size() + (i ? 2 : 0), ' ') + row[i];
    all += "\n";
  }
  return all;
}

std::string layouts_table(const std::vector<plan::PlannedLayout>& layouts) {
  std::vector<std::vector<std::string>> rows(1, {"#"});
  for (size_t place = 0; place < layouts.size(); ++place) rows.push_back({cat(place + 1)});
  for (const PlanColumn& column : kPlanColumns) {
    const auto is_usual = [&](const plan::PlannedLayout& layout) { return column.value(layout) == column.usual; };
    if (std::ranges::all_of(layouts, is_usual)) continue;
    rows[0].emplace_back(column.title);
    for (size_t place = 0; place < layouts.size(); ++place) rows[place + 1].push_back(column.value(layouts[place]));
  }
  return table(rows);
}

std::string seconds_text(const plan::StepSeconds& seconds) {
  std::vector<std::string> words;
  for (const auto& [name, part] : plan::kStepParts) {
    if (seconds.*part > 0) words.push_back(cat(name, " ", report::short_number(seconds.*part)));
  }
  return joined(words);
}

std::string memory_text(const plan::Prediction& prediction) {
  const plan::RankMemory& rank = prediction.fullest();
  std::vector<std::string> words;
  for (const auto& [name, bytes] : plan::kMemoryParts) {
    if (rank.*bytes > 0) words.push_back(cat(name, " ", bytes_text(rank.*bytes)));
  }
  const int64_t offloaded = prediction.offloaded_bytes, host = prediction.host_bytes;
  return cat(bytes_text(rank.total()), " of ", bytes_text(prediction.memory_bytes), " on the fullest rank (",
             &rank - prediction.memory.data(), " of pipe): ", joined(words),
             offloaded > 0
                 ? cat("; ", bytes_text(offloaded), host > 0 ? " of " + bytes_text(host) : "", " offloaded on a node")
                 : "",
             prediction.server_bytes > 0 ? cat("; ", bytes_text(prediction.server_bytes), " on each server") : "");
}

std::string hours(double seconds) { return report::short_number(seconds / plan::kHour) + " h"; }

// Returns a sentence about the fewest spare nodes with which the run does not wait for a repair in 99 of 100 hours.
std::string spares_text(const plan::Cluster& cluster) {
  constexpr double kRepair = 24 * plan::kHour, kEnough = 0.99;
  const double of_node = cluster.failures.mtbf_seconds_per_device / cluster.devices.front().per_node;
  const int nodes = cluster.num_nodes();
  const auto share = [&](int spares) { return plan::share_without_waiting(of_node, nodes, spares, kRepair); };
  const auto counts = std::views::iota(0, nodes + 1);
  const auto enough = std::ranges::partition_point(counts, [&](int spares) { return share(spares) < kEnough; });
  std::string text = cat("; if repairing a node takes a day, there are enough nodes ", report::percent(share(0)),
                         " of the time without spare nodes");
  if (enough == counts.end())
    return text + cat(", ", report::percent(share(nodes)), " with as many as there are nodes");
  return *enough == 0 ? text : text + cat(", ", report::percent(share(*enough)), " with ", *enough);
}

std::string failures_text(const plan::PlannedLayout& layout, const plan::Cluster& cluster) {
  const plan::FailureModel& failures = layout.failures;
  if (failures.mean_between == 0) return "";
  std::string text =
      cat("   goodput: ", report::percent(layout.prediction.goodput), " with a failure every ",
          hours(failures.mean_between), " and a save every ", report::short_number(plan::save_interval(failures)));
  const bool of_save = failures.save > plan::daly_interval(failures);
  const std::string rule = of_save ? "no sooner, since the one before takes so long" : "Daly";
  text += failures.stall > 0 ? cat(" s (", rule, "; Young ", report::short_number(plan::young_interval(failures)),
                                   "), ", report::short_number(failures.stall), " s each")
                             : cat(" s, which stalls no step as far as is known");
  return cat(text, spares_text(cluster), "\n");
}

std::string measured_text(const plan::PlannedLayout& layout) {
  if (!layout.measured) return "";
  const auto& [seconds, bubble, peak] = *layout.measured;
  const double predicted = layout.prediction.step_seconds();
  return cat("   tried:   step ", report::short_number(seconds), " s where ", report::short_number(predicted),
             " were predicted (", fixed(100 * (predicted / seconds - 1), 1), " %), bubble ", report::percent(bubble),
             " (", report::percent(layout.prediction.bubble), "), ", human_bytes(peak), " on the fullest rank (",
             bytes_text(layout.prediction.most_bytes()), ")\n");
}

std::string layout_text(size_t place, const plan::PlannedLayout& layout, const plan::Cluster& cluster) {
  const plan::Prediction& prediction = layout.prediction;
  const double beyond = prediction.step_seconds() / prediction.bound_step_seconds;
  const std::string words = layout.overrides.empty() ? "as the run says" : joined(layout.overrides, " ");
  std::string text = cat(place, ". ", words, "\n");
  text +=
      cat("   seconds: ", seconds_text(prediction.seconds), " (estimates); no layout takes less than ",
          report::short_number(prediction.bound_step_seconds), " (bound), this one ", fixed(beyond, 2), " x that\n");
  text += cat("   memory:  ", memory_text(prediction), prediction.fits() ? "\n" : "; it does not fit\n");
  if (prediction.disk_bytes > 0) {
    text += cat("   disk:    rank 0 reads and writes ", human_bytes(prediction.disk_bytes), " in a step\n");
  }
  text += measured_text(layout);
  text += failures_text(layout, cluster);
  const std::vector<std::string> lacking = not_in_braid(layout.spec);
  if (!lacking.empty()) text += cat("   braid cannot train this: ", joined(lacking, "; "), "\n");
  if (!layout.why.empty()) text += cat("   why:     ", layout.why, "\n");
  return text;
}

std::string reserve_text(const plan::Cluster& cluster) {
  const plan::DeviceGroup& group = cluster.with_least_memory();
  if (group.reserve.total() == 0) return "";
  std::vector<std::string> parts;
  for (const auto& [name, bytes] : plan::kReserveParts)
    parts.push_back(cat(name, " ", human_bytes(group.reserve.*bytes)));
  return cat("of the ", human_bytes(group.memory_bytes), " of ", group.name, ", ", human_bytes(group.reserve.total()),
             " are reserved: ", joined(parts), "\n");
}

// Returns the number of devices; "8 of 64" if the run uses fewer ranks than there are devices.
std::string devices_text(const plan::Plan& plan, const plan::Cluster& cluster) {
  const int64_t all = cluster.num_devices();
  const int64_t ranks = plan.layouts.size() == 1 ? num_ranks(plan.layouts[0].spec.mesh) : all;
  return cat(ranks < all && !cluster.devices[0].shared_cores ? report::grouped(ranks) + " of " : "",
             report::grouped(all));
}

}  // namespace

std::vector<std::string> not_in_braid(const RunSpec& spec) {
  std::vector<std::string> words;
  for (const Problem& problem : plan::problems_to_train(spec)) words.push_back(text(problem));
  return words;
}

std::string rates_note(const plan::Cluster& cluster, plan::FormulaSet formulas) {
  std::string text;
  if (formulas != plan::FormulaSet::Braid) {
    text = cat("predicted as ", word(formulas), " would run it, not braid");
    if (plan::is_torchtitan(formulas)) text += "; braid has no float8 products, no compiler of blocks and no FSDP2";
    text += "\n";
  }
  const plan::StepRange range = plan::step_range(cluster, formulas);
  if (range.is_known()) return text;
  return cat(text, "not measured by braid: rates of ", cluster.name,
             " are of data sheets and estimates; a step may take ", exact(range.least), " to ", exact(range.most),
             " times as long as predicted\n");
}

std::string plan_text(const plan::Plan& plan, const plan::Cluster& cluster, plan::FormulaSet formulas) {
  std::string text =
      cat(report::grouped(plan.searched), plan.searched == 1 ? " layout of " : " layouts of ",
          devices_text(plan, cluster), " devices of ", cluster.name, " in ", fixed(plan.seconds, 2), " s\n");
  text += rates_note(cluster, formulas) + reserve_text(cluster);
  if (!plan.shortage.empty()) text += plan.shortage + "\n";
  if (plan.layouts.empty()) return text;
  text += layouts_table(plan.layouts) + "\n";
  for (size_t place = 0; place < plan.layouts.size(); ++place)
    text += layout_text(place + 1, plan.layouts[place], cluster);
  return text;
}

}  // namespace braid::cli
