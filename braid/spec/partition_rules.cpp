// The rules between fields that concern the partition of the model into stages.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "braid/base/text.h"
#include "braid/model/shape.h"
#include "braid/spec/cross_rules.h"
#include "braid/spec/partition.h"
#include "braid/spec/recompute.h"

namespace braid::spec {
namespace {

bool even(const View& at) { return is_even(at.spec.pipeline); }
bool measured(const View& at) { return is_measured(at.spec.pipeline); }

bool recomputes_by_stage(const View& at) {
  const std::string& policies = at.spec.memory.recompute;
  return policies == kAutoRecompute || policies.find("blocks:") != policies.npos || policies.find(',') != policies.npos;
}

// Returns the blocks of each stage as the user gives them; empty for "even" and "measured".
Reals given(const View& at) {
  if (even(at) || measured(at)) return {};
  return partition_list(at.spec.pipeline.partition).value_or(Reals());
}

std::string stages_text(const View& at) {
  const int chunks = chunks_per_rank(at.spec.pipeline);
  return cat("mesh.pipe = ", at.spec.mesh.pipe, chunks > 1 ? cat(" x ", chunks) : "");
}

// Returns the smallest part of a layer that a stage may hold.
std::string smallest(const View& at) {
  const int parts = model::parts_of_layer(at.spec.model);
  return parts == 1 ? "a block" : parts == 2 ? "half a block" : cat("1/", parts, " of a block");
}

CrossRule enough_parts() {
  return {{"mesh.pipe", "pipeline.schedule", "pipeline.chunks", "pipeline.partition", "model.layers"},
          [](const View& at) {
            const int stages = num_stages(at.spec), layers = at.spec.model.layers;
            return (!even(at) || stages <= layers) && (!measured(at) || stages <= model::num_units(at.spec.model));
          },
          [](const View& at) {
            const int chunks = chunks_per_rank(at.spec.pipeline), layers = at.spec.model.layers;
            const std::string most =
                even(at) ? cat("model.layers (", layers, ")") : cat(model::num_units(at.spec.model));
            return cat("must be at most ", most, chunks > 1 ? cat(" / ", counted(chunks, "stage"), " per rank") : "",
                       even(at) ? ", since every stage holds a block"
                                : cat(", since every stage holds ", smallest(at), ", the embedding or the head"));
          }};
}

std::vector<CrossRule> list_rules() {
  return {
      {{"pipeline.partition", "mesh.pipe", "pipeline.schedule", "pipeline.chunks"},
       [](const View& at) {
         const int stages = num_stages(at.spec), entries = static_cast<int>(given(at).size());
         return entries == 0 || stages == 0 || entries == stages;
       },
       [](const View& at) { return cat("must have one entry per stage (", stages_text(at), ")"); }},
      {{"pipeline.partition"},
       [](const View& at) {
         const Reals blocks = given(at);
         return std::all_of(blocks.begin(), blocks.end(), [&](const double& count) {
           const bool at_an_end = blocks.size() > 1 && (&count == &blocks.front() || &count == &blocks.back());
           const double held = model::parts_of_layer(at.spec.model) * count;
           return held >= (at_an_end ? 0 : 1) && held == std::floor(held);
         });
       },
       [](const View& at) {
         const bool halves = model::parts_of_layer(at.spec.model) == 2;
         return cat("must give every stage ", halves ? "whole and half blocks, at least 0.5" : "whole blocks",
                    " but for the first and the last");
       }},
      {{"pipeline.partition", "model.layers"},
       [](const View& at) {
         const Reals blocks = given(at);
         return blocks.empty() || std::accumulate(blocks.begin(), blocks.end(), 0.0) == at.spec.model.layers;
       },
       [](const View& at) {
         const Reals blocks = given(at);
         return cat("must add up to model.layers (", at.spec.model.layers, "), not ",
                    exact(std::accumulate(blocks.begin(), blocks.end(), 0.0)));
       }},
  };
}

// The rules of keys that only a measured partition reads. They may also stand beside the list that it has found.
std::vector<CrossRule> measured_rules() {
  const auto text = [](const View&) { return std::string("must be left out when pipeline.partition is \"even\""); };
  return {
      {{"pipeline.partition", "memory.recompute"},
       [](const View& at) { return !measured(at) || !recomputes_by_stage(at); },
       [](const View&) {
         return std::string(
             "must not be \"measured\" when memory.recompute is \"auto\", lists blocks or has a word per stage: what "
             "is "
             "measured depends on it");
       }},
      {{"pipeline.speeds", "pipeline.partition"},
       [](const View& at) { return at.spec.pipeline.speeds.empty() || !even(at); },
       text},
      {{"pipeline.speeds", "mesh.pipe"},
       [](const View& at) {
         const auto& speeds = at.spec.pipeline.speeds;
         return speeds.empty() || static_cast<int>(speeds.size()) == at.spec.mesh.pipe;
       },
       [](const View& at) {
         return cat("must be empty or have one entry per pipeline rank (mesh.pipe = ", at.spec.mesh.pipe, ")");
       }},
      {{"pipeline.speeds"},
       [](const View& at) {
         const auto& speeds = at.spec.pipeline.speeds;
         return std::all_of(speeds.begin(), speeds.end(), [](double v) { return std::isfinite(v) && v > 0; });
       },
       [](const View&) { return std::string("must hold numbers more than 0"); }},
  };
}

}  // namespace

std::vector<CrossRule> partition_rules() {
  std::vector<CrossRule> all{enough_parts()};
  for (auto& rule : list_rules()) all.push_back(std::move(rule));
  for (auto& rule : measured_rules()) all.push_back(std::move(rule));
  return all;
}

}  // namespace braid::spec
