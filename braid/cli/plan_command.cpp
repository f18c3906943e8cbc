// braid plan: predicts the cost of a run on a cluster, and finds the fastest layouts.
#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/output_file.h"
#include "braid/base/text.h"
#include "braid/cli/commands.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/plan_output.h"
#include "braid/cli/plan_request.h"
#include "braid/cli/terminal.h"
#include "braid/plan/cluster.h"
#include "braid/plan/cluster_predictor.h"
#include "braid/plan/goodput.h"
#include "braid/plan/parallelism_table.h"
#include "braid/plan/pipelined_run.h"
#include "braid/plan/reasons.h"
#include "braid/plan/search.h"
#include "braid/report/markup.h"
#include "braid/report/timeline_svg.h"
#include "braid/spec/run_spec.h"

#ifdef BRAID_TORCH
#include "braid/cli/torch/tried_layouts.h"
#endif

namespace braid::cli {
namespace {

std::string memory_of(const plan::ParallelismRow& row) {
  const auto most = static_cast<double>(row.prediction.fullest().total());
  return cat(fixed(most / plan::kGib, 2), " GiB", row.prediction.fits() ? "" : ", too much");
}

std::string range_in_words(const plan::Prediction& prediction) {
  if (prediction.range.is_known()) return "";
  const double seconds = prediction.step_seconds();
  return cat(" (", report::short_number(prediction.range.least * seconds), " to ",
             report::short_number(prediction.range.most * seconds), " s)");
}

std::string row_text(const plan::ParallelismRow& row) {
  std::string text = cat(row.name, "\n  copied:   ", row.copied, "\n  split:    ", row.split,
                         "\n  sent:     ", row.when, "; ", human_bytes(row.sent_bytes), " by a rank in a step, ",
                         human_bytes(row.sent_bytes_on_twice), " on twice as many (grows ", row.growth, ")\n");
  if (!row.possible) return text + "  this run cannot be split so\n";
  const plan::StepSeconds& seconds = row.prediction.seconds;
  return text + cat("  memory:   ", memory_of(row),
                    " on the fullest rank\n  step:     ", report::short_number(seconds.total()), " s",
                    range_in_words(row.prediction), ", computing ", report::percent(seconds.compute / seconds.total()),
                    " of it\n");
}

// Returns the textbook comparison of parallelism axes with the run's own numbers, on all devices of the cluster. Each
// row also gives the bytes sent on twice as many devices.
std::string compare_text(const RunSpec& run, const plan::Cluster& cluster) {
  const int ranks = static_cast<int>(std::max<int64_t>(2, cluster.num_devices()));
  std::string text = cat(rates_note(cluster, plan::FormulaSet::Braid), counted(ranks, "rank"), " along one axis\n");
  for (const plan::ParallelismRow& row : plan::parallelism_table(run, cluster, ranks)) text += row_text(row);
  return text;
}

void add_goodput(const plan::Cluster& cluster, plan::PlannedLayout& layout) {
  layout.failures = plan::failure_model(layout.spec, cluster);
  layout.prediction.goodput = plan::goodput(layout.failures, plan::save_interval(layout.failures));
}

// Returns "predicted, step 0.231 s"; with the data ranks where these have unlike steps.
std::string title_of(const plan::PredictedStep& step, const plan::Prediction& prediction) {
  std::vector<std::string> ranks;
  for (const int rank : step.data_ranks) ranks.push_back(cat(rank));
  return cat("predicted, step ", report::short_number(prediction.step_seconds()), " s",
             ranks.empty() ? "" : cat(", data ", ranks.size() == 1 ? "rank " : "ranks ", joined(ranks)));
}

// Writes a picture of the predicted step.
void draw(const PlanRequest& request, std::vector<plan::PredictedStep> steps, const plan::Prediction& prediction) {
  std::vector<report::NamedTimeline> timelines;
  for (plan::PredictedStep& step : steps) {
    if (step.timeline.ranks.empty()) {
      throw ConfigError({{"--svg", request.svg,
                          cat("draws schedules that are simulated, of at most ", plan::kMostActions,
                              " passes; the step of this run has more"),
                          ""}});
    }
    timelines.push_back({title_of(step, prediction), std::move(step.timeline)});
  }
  write_named_file(request.svg, report::timeline_svg(timelines));
}

plan::Plan fixed_plan(const PlanRequest& request) {
  plan::PlannedLayout layout;
  layout.spec = request.run;
  plan::PredictOptions options{request.formulas, plan::PipelineDetail::Played};
  if (!request.svg.empty()) options.kept = plan::KeptOutcome::Timeline;
  plan::PipelinedRun run(request.run, request.cluster, options);
  layout.prediction = run.with_zero(request.run.sync.zero, request.run.sync.zero_group);
  if (!request.svg.empty()) draw(request, run.steps(), layout.prediction);
  return {1, 0, {std::move(layout)}, ""};
}

constexpr int kNothingFits = 1;  // exit code

// The search predicts layouts by closed forms, and the simulator then predicts the layouts that are shown. It may order
// them differently, and find that some do not fit. So it plays more layouts than are shown.
constexpr int kPlayedForEachShown = 4;
constexpr int kFewestPlayed = 100;

void play(const PlanRequest& request, std::vector<plan::PlannedLayout>& layouts) {
  for (plan::PlannedLayout& layout : layouts) {
    layout.prediction =
        plan::predict_run(layout.spec, request.cluster, {request.formulas, plan::PipelineDetail::Played});
  }
  std::erase_if(layouts, [](const plan::PlannedLayout& layout) { return !layout.prediction.fits(); });
  std::ranges::stable_sort(layouts, {},
                           [](const plan::PlannedLayout& layout) { return layout.prediction.step_seconds(); });
  if (std::ssize(layouts) > request.top) layouts.resize(static_cast<size_t>(request.top));
}

// Simulates more and more layouts until request.top of them fit, or until all have been simulated.
plan::Plan played_plan(const PlanRequest& request, plan::SearchRequest& search_request,
                       plan::ClusterPredictor& predictor) {
  search_request.top = std::max(kFewestPlayed, kPlayedForEachShown * request.top);
  while (true) {
    plan::Plan plan = plan::search(search_request, predictor);
    const bool is_all = std::ssize(plan.layouts) < search_request.top;
    play(request, plan.layouts);
    if (is_all || std::ssize(plan.layouts) >= request.top) return plan;
    search_request.top *= 8;
  }
}

plan::Plan best_plan(const PlanRequest& request) {
  plan::ClusterPredictor predictor(request.cluster, {request.formulas, plan::PipelineDetail::Estimated});
  const std::vector<plan::DeviceGroup>& kinds = request.cluster.devices;
  plan::SearchRequest search_request{{request.run, request.cluster.num_devices(), request.cluster.least_per_node(),
                                      request.pinned, static_cast<int>(kinds.size()), kinds.front().shared_cores},
                                     static_cast<int64_t>(request.cluster.with_least_memory().usable_bytes())};
  plan::Plan plan = played_plan(request, search_request, predictor);
  if (plan.layouts.empty()) plan.shortage = plan::shortage(search_request, request.cluster, predictor.options());
  plan::add_reasons(search_request, plan.layouts, predictor);
  for (plan::PlannedLayout& layout : plan.layouts) {
    layout.overrides.insert(layout.overrides.begin(), request.pin_words.begin(), request.pin_words.end());
  }
  return plan;
}

}  // namespace

int plan_command(const Words& words) {
  const std::optional<PlanRequest> request = plan_request(words);
  if (!request) return 0;
#ifdef BRAID_TORCH
  if (!request->calibrate.empty()) return doctor_command({{"--cluster", request->calibrate}});
#endif
  if (request->what == PlanTarget::Comparison) {
    std::cout << shown_on_stdout(compare_text(request->run, request->cluster));
    return 0;
  }
  plan::Plan plan = request->what == PlanTarget::Fixed ? fixed_plan(*request) : best_plan(*request);
  for (plan::PlannedLayout& layout : plan.layouts) add_goodput(request->cluster, layout);
#ifdef BRAID_TORCH
  if (request->tried > 0) try_layouts(plan.layouts, request->tried);
#endif
  const plan::Cluster& cluster = request->cluster;
  const plan::FormulaSet formulas = request->formulas;
  std::cout << (request->output == PlanOutput::Json ? plan_json(plan, cluster, formulas)
                                                    : shown_on_stdout(plan_text(plan, cluster, formulas)));
  const bool all_fit = std::ranges::all_of(plan.layouts, [](const auto& layout) { return layout.prediction.fits(); });
  return plan.layouts.empty() || !all_fit ? kNothingFits : 0;
}

}  // namespace braid::cli
