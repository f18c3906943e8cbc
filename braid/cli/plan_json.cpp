// A plan as JSON (docs/planning.md).
#include <nlohmann/json.hpp>

#include "braid/cli/plan_output.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/partition.h"

namespace braid::cli {
namespace {

using Json = nlohmann::ordered_json;

double gib(int64_t bytes) { return static_cast<double>(bytes) / plan::kGib; }

Json memory_json(const plan::Prediction& prediction) {
  const plan::RankMemory& rank = prediction.fullest();
  Json by_rank = Json::array();
  for (const plan::RankMemory& one : prediction.memory) by_rank.push_back(gib(one.total()));
  Json json{{"peak", gib(rank.total())}, {"by_rank", std::move(by_rank)}};
  for (const auto& [name, bytes] : plan::kMemoryParts) json[name] = gib(rank.*bytes);
  if (prediction.offloaded_bytes > 0) json["offloaded"] = gib(prediction.offloaded_bytes);
  if (prediction.server_bytes > 0) json["server"] = gib(prediction.server_bytes);
  return json;
}

// Adds the range of a step's seconds, the reasons why braid cannot train the layout, goodput, the cost of saves, the
// reason for the layout, unequal batch shares, the form of context parallelism, and measurements.
void add_details(const plan::PlannedLayout& layout, Json& json) {
  const RunSpec& spec = layout.spec;
  const plan::Prediction& prediction = layout.prediction;
  if (!prediction.range.is_known()) {
    const double seconds = prediction.step_seconds();
    json["step_seconds_range"] = {prediction.range.least * seconds, prediction.range.most * seconds};
  }
  const std::vector<std::string> lacking = not_in_braid(spec);
  if (!lacking.empty()) json["not_in_braid"] = lacking;
  json["goodput"] = prediction.goodput;
  if (layout.failures.mean_between > 0) {
    json["save"] = {{"every_seconds", plan::save_interval(layout.failures)}, {"stall_seconds", layout.failures.stall}};
  }
  json["why"] = layout.why;
  if (!spec::has_equal_shares(spec.mesh)) json["batch_shares"] = spec.mesh.batch_shares;
  if (spec.mesh.context > 1) json["context_parallel"] = word(spec.mesh.context_parallel);
  if (layout.measured) {
    const auto& [step_seconds, bubble, peak] = *layout.measured;
    json["measured"] = {{"step_seconds", step_seconds}, {"bubble", bubble}, {"peak_gib", peak / plan::kGib}};
  }
}

Json layout_json(const plan::PlannedLayout& layout) {
  const RunSpec& spec = layout.spec;
  const plan::Prediction& prediction = layout.prediction;
  Json json;
  json["mesh"] = {{"pipe", spec.mesh.pipe},
                  {"data", spec.mesh.data},
                  {"tensor", spec.mesh.tensor},
                  {"context", spec.mesh.context},
                  {"expert", spec.mesh.expert}};
  json["sequence_parallel"] = spec.mesh.sequence_parallel;
  json["zero"] = spec.sync.zero;
  json["zero_group"] = spec.sync.zero_group;
  json["schedule"] = spec.pipeline.schedule;
  json["chunks"] = spec::chunks_per_rank(spec.pipeline);
  json["microbatch"] = spec.train.microbatch;
  json["recompute"] = spec.memory.recompute;
  json["partition"] = spec.pipeline.partition;
  json["overrides"] = layout.overrides;
  json["step_seconds"] = prediction.step_seconds();
  json["tokens_per_second_per_device"] = prediction.tokens_per_second_per_device;
  json["mfu"] = prediction.mfu;
  json["bubble"] = prediction.bubble;
  json["bound_step_seconds"] = prediction.bound_step_seconds;
  json["fits"] = prediction.fits();
  json["memory_gib"] = memory_json(prediction);
  if (prediction.disk_bytes > 0) json["disk_gib"] = prediction.disk_bytes / plan::kGib;
  for (const auto& [name, part] : plan::kStepParts) json["seconds"][name] = prediction.seconds.*part;
  add_details(layout, json);
  return json;
}

Json device_memory_json(const plan::Cluster& cluster) {
  const plan::DeviceGroup& group = cluster.with_least_memory();
  Json json{{"total", group.memory_bytes / plan::kGib}, {"usable", group.usable_bytes() / plan::kGib}};
  for (const auto& [name, bytes] : plan::kReserveParts) json["reserve"][name] = group.reserve.*bytes / plan::kGib;
  return json;
}

}  // namespace

std::string plan_json(const plan::Plan& plan, const plan::Cluster& cluster, plan::FormulaSet formulas) {
  Json json{{"searched", plan.searched}, {"seconds", plan.seconds}, {"layouts", Json::array()}};
  json["as"] = word(formulas);
  json["rates"] = word(cluster.rates);
  json["device_memory_gib"] = device_memory_json(cluster);
  for (const plan::PlannedLayout& layout : plan.layouts) json["layouts"].push_back(layout_json(layout));
  if (!plan.shortage.empty()) json["shortage"] = plan.shortage;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace braid::cli
