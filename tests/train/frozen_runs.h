// Runs with frozen parameters, for the tests that compare them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "braid/spec/parameter_groups.h"
#include "tests/train/layout_run.h"

namespace braid::train {

struct FrozenPattern {
  std::string name;
  std::vector<ParameterGroup> groups;
  OutputWeights output = OutputWeights::Tied;
};

inline ParameterGroup frozen(const std::string& match) { return {.match = match, .frozen = true}; }
inline ParameterGroup trained(const std::string& match) { return {.match = match}; }

// Returns patterns of a GPT-2 of 8 layers: two pipeline ranks have layers 0 to 3 and 4 to 7, four have 0 and 1 and so
// on.
inline std::vector<FrozenPattern> frozen_patterns() {
  return {
      {"embedding", {frozen("w?e.weight")}, OutputWeights::Untied},
      {"all but the last layer", {trained("blocks.7.*"), frozen("*")}},
      {"all but norms", {trained("*ln_*"), frozen("*")}},
      {"norms and biases", {frozen("*ln_*"), frozen("*.bias")}},
      {"all but the head", {trained("head.weight"), frozen("*")}, OutputWeights::Untied},
      {"every second layer", {frozen("blocks.[0246].*")}},
      {"tied embedding and head", {frozen("wte.weight")}},
      {"untied head", {frozen("head.weight")}, OutputWeights::Untied},
      {"first stage", {frozen("w?e.weight"), frozen("blocks.[0-3].*")}, OutputWeights::Untied},
      {"last stage", {frozen("blocks.[4-7].*"), frozen("ln_f.*"), frozen("head.weight")}, OutputWeights::Untied},
      {"middle stage", {frozen("blocks.[2-5].*")}},
      {"all but biases", {trained("*.bias"), frozen("*")}},
      {"all but an inner layer's half", {trained("blocks.3.mlp.*"), frozen("*")}},
  };
}

inline RunSpec frozen_run(const FrozenPattern& pattern) {
  RunSpec spec = tiny_spec(6, 8);
  spec.train.steps = 2;
  spec.model.output_weights = pattern.output;
  spec.optimizer.groups = pattern.groups;
  return spec;
}

// Returns copies of the run's weights before its first step.
inline std::map<std::string, at::Tensor> initial_weights(const RunSpec& spec) {
  std::map<std::string, at::Tensor> weights;
  on_every_rank(spec, [&](Trainer& trainer) { collect(trainer, weights, Held::Weights); });
  for (auto& [name, weight] : weights) weight = weight.clone();
  return weights;
}

}  // namespace braid::train
