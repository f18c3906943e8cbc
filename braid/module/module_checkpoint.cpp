// Saves and loads modules and their optimizer. Tensors that the optimizer updates consist of pieces of parameters. Step
// counts are tensors of their own.
#include "braid/module/module_checkpoint.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint_reader.h"
#include "braid/ckpt/exchange.h"
#include "braid/mesh/flat_range.h"
#include "braid/module/layer_facts.h"

namespace braid::modules {
namespace {

constexpr const char* kSteps = "step";

std::string state_name(const std::string& kind, const std::string& parameter) { return cat(kind, "/", parameter); }

void verify_whole(ckpt::CheckpointReader& reader, const std::string& directory) {
  try {
    reader.verify();
  } catch (const IoError& error) {
    throw IoError(directory, -1, cat("is not whole: ", error.what()));
  }
}

}  // namespace

// The tensors to read from a checkpoint; states and step counts by place in updated_.
struct ModuleCheckpoint::Wanted {
  std::vector<ckpt::PlacedTensor> tensors, counts;
  std::vector<size_t> counted;  // by step count: place in updated_
  std::map<size_t, TorchState> states;
  std::vector<std::pair<size_t, std::string>> without_states;  // place in updated_, name
};

// Returns the part's view of an updated tensor, or of a tensor with as many elements.
at::Tensor ModuleCheckpoint::view_of(const at::Tensor& updated, const Part& part) {
  const at::Tensor all = updated.detach();
  const mesh::Index& shape = part.placement.local_shape;
  if (shape_of(all) == shape) return all;  // whatever its strides
  return all.narrow(0, part.at, mesh::num_elements(shape)).view(shape);
}

ModuleCheckpoint::ModuleCheckpoint(const ModelPart& part, torch::optim::Optimizer& optimizer)
    : part_(part), optimizer_(optimizer) {
  names_of_numbers(optimizer);
  require_stored(part);
  const bool sharded = part.synced && part.synced->store().sharding().what != param::Sharded::Nothing;
  const auto parameters = named_parameters(part);
  updated_ = sharded ? owned_ranges(parameters) : whole_parameters(parameters);
  Tensors tensors;
  for (const Updated& each : updated_) tensors.push_back(each.tensor);
  require_parameters_of(tensors, optimizer);
}

std::vector<ModuleCheckpoint::Updated> ModuleCheckpoint::whole_parameters(
    const std::vector<NamedTensor>& parameters) const {
  std::vector<Updated> all;
  for (const auto& [name, tensor] : parameters)
    all.push_back({tensor, {{name, mesh::replicated(shape_of(tensor)), 0}}});
  return all;
}

// Returns the ranges that the optimizer updates under sharding: this rank's range of each unit.
std::vector<ModuleCheckpoint::Updated> ModuleCheckpoint::owned_ranges(
    const std::vector<NamedTensor>& parameters) const {
  std::map<const void*, std::string> names;
  for (const auto& [name, tensor] : parameters) names[tensor.unsafeGetTensorImpl()] = name;
  const ModuleStore& modules = part_.synced->modules();
  std::vector<Updated> all;
  for (const param::OwnedRange& range : modules.store().owned()) {
    std::vector<Part> parts;
    for (const param::Parameter& param : modules.store().params()) {
      const int64_t begin = std::max(range.begin, param.offset) - param.offset;
      const int64_t end = std::min(range.end, param.offset + param.num_elements()) - param.offset;
      if (begin >= end) continue;
      const std::string& name = names.at(modules.parameters()[param.index].unsafeGetTensorImpl());
      for (const mesh::Fragment& part : mesh::fragments(param.placement, begin, end))
        parts.push_back({name, part.placement, param.offset + part.begin - range.begin});
    }
    all.push_back({modules.updated()[all.size()], std::move(parts)});
  }
  return all;
}

// Adds whole weights: when a checkpoint is read, each rank has all of them.
void ModuleCheckpoint::add_weights(std::vector<ckpt::PlacedTensor>& tensors) const {
  std::set<const void*> elsewhere;
  if (part_.synced && part_.synced->store().shards_parameters()) {
    for (const at::Tensor& each : part_.synced->modules().parameters()) elsewhere.insert(each.unsafeGetTensorImpl());
    for (const auto& [tensor, parts] : updated_) {
      for (const Part& part : parts) tensors.push_back({part.name, part.placement, view_of(tensor, part)});
    }
  }
  for (const auto& [name, tensor] : named_weights(part_)) {
    if (!elsewhere.contains(tensor.unsafeGetTensorImpl()))
      tensors.push_back({name, mesh::replicated(shape_of(tensor)), tensor.detach()});
  }
}

std::vector<ckpt::PlacedTensor> ModuleCheckpoint::tensors() const {
  if (part_.synced && part_.synced->store().disk()) part_.synced->store().disk()->disk().check_written();
  std::vector<ckpt::PlacedTensor> tensors;
  add_weights(tensors);
  for (const auto& [tensor, parts] : updated_) {
    const std::optional<TorchState> state = find_state(optimizer_, tensor);
    if (!state || state->steps == 0) continue;  // zeros of no step are as none
    std::set<std::string> counted;
    for (const Part& part : parts) {
      for (const auto& [name, numbers] : state->numbers)
        tensors.push_back({state_name(name, part.name), part.placement, view_of(numbers, part)});
      if (state->steps && counted.insert(part.name).second)
        tensors.push_back(
            {state_name(kSteps, part.name), mesh::replicated({}), at::full({}, *state->steps, at::kLong)});
    }
  }
  for (ckpt::PlacedTensor& placed : tensors) placed.local = placed.local.contiguous();
  return tensors;
}

// Returns problems for weights and kinds of states that the checkpoint has and the model or the optimizer has not, and
// for an optimizer of another kind.
std::vector<Problem> ModuleCheckpoint::unknown(const ckpt::Manifest& manifest) const {
  const std::set<std::string> weights = names_of_weights(part_);
  const std::string kind = kind_of(optimizer_), &saved = manifest.info.optimizer;  // empty in older checkpoints
  const bool is_other = !saved.empty() && saved != kind;
  std::set<std::string> kinds, strange;
  for (const std::string& name : names_of_numbers(optimizer_)) kinds.insert(name);
  if (counts_steps(optimizer_)) kinds.insert(kSteps);
  std::vector<Problem> problems;
  for (const auto& [name, tensor] : manifest.tensors) {
    const size_t slash = name.find('/');
    if (slash != name.npos && !is_other && !kinds.contains(name.substr(0, slash)))
      strange.insert(name.substr(0, slash));
    if (slash == name.npos && !weights.contains(name))
      problems.push_back({name, "", "is in the checkpoint and not in the model", ""});
  }
  if (is_other)
    problems.push_back({"optimizer", kind, cat("must be ", saved, ", with which the checkpoint was made"), ""});
  for (const std::string& state : strange)
    problems.push_back({"optimizer", "", cat("must know the states that the checkpoint has, ", state), ""});
  return problems;
}

// Returns true if the optimizer counts its steps and has made none, of any parameter.
bool ModuleCheckpoint::has_made_no_step() const {
  return std::ranges::all_of(optimizer_.param_groups(), [&](const torch::optim::OptimizerParamGroup& group) {
    return std::ranges::all_of(group.params(), [&](const at::Tensor& each) {
      const auto state = find_state(optimizer_, each);
      return !state || state->steps == 0;
    });
  });
}

ModuleCheckpoint::Wanted ModuleCheckpoint::wanted(const ckpt::Manifest& manifest) const {
  Wanted wanted;
  add_weights(wanted.tensors);
  const std::vector<std::string> names = names_of_numbers(optimizer_);
  const bool fresh = has_made_no_step();
  for (size_t i = 0; i < updated_.size(); ++i) {
    const bool amsgrad = is_amsgrad(optimizer_, updated_[i].tensor);
    // States of zeros are filled where they are, which may be on disk.
    const auto zeros = fresh ? find_state(optimizer_, updated_[i].tensor) : std::nullopt;
    for (const Part& part : updated_[i].parts) {
      const auto saved = [&](const std::string& name) {
        return manifest.tensors.contains(state_name(name, part.name));
      };
      if (std::ranges::none_of(names, saved)) {
        wanted.without_states.emplace_back(i, part.name);
        continue;
      }
      for (const std::string& name : names) {
        if (!saved(name) && name == "max_exp_avg_sq" && !amsgrad) continue;
        at::Tensor& numbers = wanted.states[i].numbers[name];
        if (!numbers.defined() && zeros && zeros->numbers.contains(name)) numbers = zeros->numbers.at(name);
        if (!numbers.defined()) numbers = at::zeros_like(updated_[i].tensor.detach());
        wanted.tensors.push_back({state_name(name, part.name), part.placement, view_of(numbers, part)});
      }
      if (!counts_steps(optimizer_)) continue;
      wanted.counts.push_back(
          {state_name(kSteps, part.name), mesh::replicated({}), at::full({}, int64_t{0}, at::kLong)});
      wanted.counted.push_back(i);
    }
  }
  return wanted;
}

// Sets the step count of each updated tensor. A range has one count, so all parameters in it must have the same.
void ModuleCheckpoint::count(ckpt::CheckpointReader& reader, Wanted& wanted) const {
  ckpt::BlockReads reads = reader.reads_of(wanted.counts);
  reads.verify();
  reads.fill();
  std::vector<Problem> problems;
  for (size_t i = 0; i < wanted.counts.size(); ++i) {
    std::optional<int64_t>& steps = wanted.states[wanted.counted[i]].steps;
    const auto saved = wanted.counts[i].local.item<int64_t>();
    if (steps.value_or(saved) != saved)
      problems.push_back({wanted.counts[i].name, cat(saved),
                          cat("must be ", *steps, ", that of what is sharded with it"), "sync.zero = 0"});
    steps = saved;
  }
  for (const auto& [i, name] : wanted.without_states) {
    const auto found = wanted.states.find(i);
    if (found == wanted.states.end() || found->second.steps.value_or(0) == 0) continue;
    problems.push_back({name, "no states",
                        cat("must have been updated ", *found->second.steps,
                            " times, as what is in one range with it, unless sync.zero is 0 and all is in memory"),
                        ""});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

int64_t ModuleCheckpoint::load(const std::string& directory) {
  const c10::AutoGradMode no_grad(false);
  std::optional<ckpt::CheckpointReader> reader;
  std::unique_ptr<ckpt::BlockReads> reads;
  Wanted wanted;
  const auto look = [&] {
    reader.emplace(directory);
    if (part_.world.rank() == 0) verify_whole(*reader, directory);
    auto problems = unknown(reader->manifest());
    wanted = this->wanted(reader->manifest());
    for (const auto* tensors : {&wanted.tensors, &wanted.counts}) {
      for (Problem& problem : reader->differences(*tensors)) problems.push_back(std::move(problem));
    }
    if (!problems.empty()) throw ConfigError(std::move(problems));
    count(*reader, wanted);
    reads.reset(new ckpt::BlockReads(reader->reads_of(wanted.tensors)));
    reads->verify();
  };
  ckpt::all_or_none(look, part_.world);
  reads->fill();
  // Backward through a graph that was recorded before then throws.
  for (const ckpt::PlacedTensor& placed : wanted.tensors) placed.local.unsafeGetTensorImpl()->bump_version();
  optimizer_.state().clear();
  for (const auto& [i, state] : wanted.states)
    optimizer_.state()[updated_[i].tensor.unsafeGetTensorImpl()] = made_state(optimizer_, state);
  return reader->manifest().info.step;
}

}  // namespace braid::modules
