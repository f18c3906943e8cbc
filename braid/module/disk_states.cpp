#include "braid/module/disk_states.h"

#include <torch/optim/optimizer.h>

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/disk/aligned_buffer.h"
#include "braid/spec/run_spec.h"

namespace braid::modules {
namespace {

param::DiskSpace space_of(const OptimizerOnDisk::Options& options, size_t num_states) {
  param::DiskSpace space;
  space.place.folders = options.folders;
  space.place.key = "folders";
  space.place.checksums = disk::Checksums::On;
  space.place.depth = kChunksInMemory * std::max(static_cast<int>(num_states), 1);
  space.chunk_bytes = options.chunk_bytes;
  return space;
}

}  // namespace

DiskStates::DiskStates(torch::optim::Optimizer& optimizer, const OptimizerOnDisk::Options& options)
    : optimizer_(optimizer), places_(places_of(optimizer)), names_(checked(options)) {
  disk_ = std::make_shared<param::DiskTensors>(space_of(options, names_.size()), space_bytes(names_.size()));
  for (size_t i = 0; i < names_.size(); ++i) {
    tensors_.push_back(disk_->zeros(num_elements(), places_[0].type, param::MemoryCategory::Optimizer));
  }
  if (counts_steps(optimizer)) add_zeros();
}

std::vector<std::string> DiskStates::checked(const OptimizerOnDisk::Options& options) const {
  const std::vector<std::string> names = names_of_kept(optimizer_);
  auto problems = problems_of(places_, optimizer_);
  disk::Options place = space_of(options, names.size()).place;
  place.bytes = space_bytes(names.size());
  for (Problem& problem : disk::problems(place)) problems.push_back(std::move(problem));
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return names;
}

// Without states it is one block, which is not used.
int64_t DiskStates::space_bytes(size_t num_states) const {
  const size_t element_bytes = places_.empty() ? 0 : c10::elementSize(places_[0].type);
  const int64_t tensor_bytes = disk::whole_blocks(num_elements() * static_cast<int64_t>(element_bytes));
  return std::max(static_cast<int64_t>(num_states) * tensor_bytes, disk::kBlockBytes);
}

void DiskStates::require_unchanged() const {
  const std::vector<StatePlace> places = places_of(optimizer_);
  const auto same = [](const StatePlace& a, const StatePlace& b) {
    return a.parameter.is_same(b.parameter) && a.group == b.group && a.begin == b.begin && a.type == b.type;
  };
  if (std::ranges::equal(places, places_, same) && names_of_kept(optimizer_) == names_) return;
  throw ConfigError({{"optimizer", "",
                      "must have the parameters, their types and sizes, and the states (amsgrad, momentum) that it had "
                      "when they moved to disk",
                      ""}});
}

// Returns the part of state tensor `name` that a parameter has, in the parameter's shape.
at::Tensor DiskStates::part_of(size_t name, const StatePlace& place) const {
  const at::Tensor& parameter = place.parameter;
  return tensors_[name].as_strided(parameter.sizes(), parameter.strides(), place.begin);
}

void DiskStates::set(const StatePlace& place, TorchState state) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (state.numbers.contains(names_[i])) state.numbers[names_[i]] = part_of(i, place);
  }
  optimizer_.state()[place.parameter.unsafeGetTensorImpl()] = made_state(optimizer_, state);
}

// Adds the states with which Adam begins, for a load() before the first step.
void DiskStates::add_zeros() const {
  for (const StatePlace& place : places_) {
    if (!place.parameter.requires_grad() || find_state(optimizer_, place.parameter)) continue;
    TorchState zeros{{}, 0};
    for (const std::string& name : names_) {
      if (name != "max_exp_avg_sq" || is_amsgrad(optimizer_, place.parameter)) zeros.numbers[name];
    }
    set(place, std::move(zeros));
  }
}

bool DiskStates::is_in_place(const std::string& name, const at::Tensor& numbers, const StatePlace& place) const {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end() || !disk_->has(numbers)) return false;
  const at::Tensor own = part_of(static_cast<size_t>(found - names_.begin()), place);
  return own.const_data_ptr() == numbers.const_data_ptr() && own.strides() == numbers.strides();
}

}  // namespace braid::modules
