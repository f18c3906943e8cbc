// Names by identity of tensors; states by their kind.
#include "braid/module/module_checkpoint.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/base/system_fault.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint_files.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/safetensors.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/mesh/flat_range.h"

namespace braid {
namespace {

Index shape_of(const at::Tensor& tensor) { return {tensor.sizes().begin(), tensor.sizes().end()}; }

template <class Items>
void add_named(const std::string& layer, const Items& items, std::set<const void*>& seen,
               std::vector<NamedTensor>& found) {
  for (const auto& item : items) {
    const at::Tensor& tensor = item.value();
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second)
      found.push_back({cat(layer, ".", item.key()), tensor});
  }
}

// One tensor's state: numbers of its shape, by name, and how many steps it has seen.
struct State {
  std::map<std::string, at::Tensor> numbers;
  std::optional<int64_t> steps;
};

template <class Param>
State adam_state(const Param& state) {
  State read{{{"exp_avg", state.exp_avg()}, {"exp_avg_sq", state.exp_avg_sq()}}, state.step()};
  if (state.max_exp_avg_sq().defined()) read.numbers["max_exp_avg_sq"] = state.max_exp_avg_sq();
  return read;
}

State state_of(const torch::optim::OptimizerParamState& state) {
  using namespace torch::optim;
  if (const auto* adam = dynamic_cast<const AdamParamState*>(&state)) return adam_state(*adam);
  if (const auto* adamw = dynamic_cast<const AdamWParamState*>(&state)) return adam_state(*adamw);
  const auto& sgd = dynamic_cast<const SGDParamState&>(state);
  if (!sgd.momentum_buffer().defined()) return {};
  return {{{"momentum_buffer", sgd.momentum_buffer()}}, {}};
}

template <class Param>
std::unique_ptr<torch::optim::OptimizerParamState> adam_of(const State& state) {
  auto made = std::make_unique<Param>();
  made->step(*state.steps);
  made->exp_avg(state.numbers.at("exp_avg"));
  made->exp_avg_sq(state.numbers.at("exp_avg_sq"));
  if (state.numbers.contains("max_exp_avg_sq")) made->max_exp_avg_sq(state.numbers.at("max_exp_avg_sq"));
  return made;
}

std::unique_ptr<torch::optim::OptimizerParamState> made_state(const torch::optim::Optimizer& optimizer,
                                                              const State& state) {
  using namespace torch::optim;
  if (dynamic_cast<const Adam*>(&optimizer)) return adam_of<AdamParamState>(state);
  if (dynamic_cast<const AdamW*>(&optimizer)) return adam_of<AdamWParamState>(state);
  auto made = std::make_unique<SGDParamState>();
  made->momentum_buffer(state.numbers.at("momentum_buffer"));
  return made;
}

std::vector<std::string> names_of_numbers(const torch::optim::Optimizer& optimizer) {
  if (dynamic_cast<const torch::optim::SGD*>(&optimizer)) return {"momentum_buffer"};
  return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
}

constexpr const char* kSteps = "step";

std::map<std::string, at::Tensor> weights_by_name(const LayerList& layers) {
  std::map<std::string, at::Tensor> all;
  for (const NamedTensor& named : named_parameters(layers)) all[named.name] = named.tensor;
  for (const NamedTensor& named : named_buffers(layers)) all[named.name] = named.tensor;
  return all;
}

TensorInfo info_of(const std::string& name, const at::Tensor& tensor) {
  return {name, element_type(tensor.scalar_type()), shape_of(tensor)};
}

}  // namespace

std::vector<NamedTensor> named_parameters(const LayerList& layers) {
  std::vector<NamedTensor> found;
  std::set<const void*> seen;
  for (int l = 0; l < layers.size(); ++l) {
    if (layers[l].module) add_named(layers[l].name, layers[l].module->named_parameters(), seen, found);
    int number = 0;
    for (const at::Tensor& tensor : layers[l].options.parameters) {
      if (seen.insert(tensor.unsafeGetTensorImpl()).second)
        found.push_back({cat(layers[l].name, ".", number++), tensor});
    }
  }
  return found;
}

std::vector<NamedTensor> named_buffers(const LayerList& layers) {
  std::vector<NamedTensor> found;
  std::set<const void*> seen;
  for (int l = 0; l < layers.size(); ++l) {
    if (layers[l].module) add_named(layers[l].name, layers[l].module->named_buffers(), seen, found);
  }
  return found;
}

void write_weights(const std::string& path, const LayerList& layers) {
  const std::map<std::string, at::Tensor> by_name = weights_by_name(layers);
  std::vector<TensorInfo> infos;
  for (const auto& [name, tensor] : by_name) infos.push_back(info_of(name, tensor));
  const std::vector<TensorEntry> entries = laid_out(std::move(infos));
  PosixFileSystem files;
  const std::string temporary = cat(path, ".tmp.", ::getpid()), header = header_bytes(entries, {{"format", "pt"}});
  const auto file = files.create(temporary);
  try {
    file->append(std::as_bytes(std::span(header)));
    for (const TensorEntry& entry : entries) {
      const at::Tensor values = by_name.at(entry.info.name).detach().cpu().contiguous();
      file->append(bytes_of(values));
    }
    file->sync();
    file->close();
    files.replace(temporary, path);
    files.sync_directory(parent_folder(path));
  } catch (const IoError&) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void read_weights(const std::string& path, const LayerList& layers) {
  const c10::AutoGradMode no_grad(false);
  const CheckedFile file(path, Links::Followed);
  const SafetensorsHeader header = read_header(file);
  std::map<std::string, at::Tensor> missing = weights_by_name(layers), all = missing;
  std::vector<Problem> problems;
  for (const TensorEntry& entry : header.tensors) {
    const auto found = missing.find(entry.info.name);
    if (found == missing.end()) {
      problems.push_back({entry.info.name, "", cat("is in ", path, " and not in the model"), ""});
      continue;
    }
    const TensorInfo own = info_of(found->first, found->second);
    if (entry.info != own)
      problems.push_back({own.name, drawn(entry.info.type, entry.info.shape),
                          cat("in ", path, "; the model has ", drawn(own.type, own.shape)), ""});
    missing.erase(found);
  }
  for (const auto& [name, tensor] : missing) problems.push_back({name, "", cat("is not in ", path), ""});
  if (!problems.empty()) throw ConfigError(std::move(problems));
  for (const TensorEntry& entry : header.tensors) {
    const at::Tensor values = at::empty(entry.info.shape, at::TensorOptions(scalar_type(entry.info.type)));
    file.read(header.data_begin + entry.begin, bytes_of(values));
    const at::Tensor& to = all.at(entry.info.name);
    to.set_data(values.to(to.device()));  // as torch::load does, which replicas follow
  }
}

ModuleCheckpoint::ModuleCheckpoint(const LayerList& layers, const SyncedModules& synced,
                                   torch::optim::Optimizer& optimizer)
    : layers_(layers), synced_(synced), optimizer_(optimizer) {
  using namespace torch::optim;
  if (!dynamic_cast<Adam*>(&optimizer) && !dynamic_cast<AdamW*>(&optimizer) && !dynamic_cast<SGD*>(&optimizer)) {
    throw ConfigError({{"optimizer", "",
                        "must be torch's Adam, AdamW or SGD to be saved: of others it is not known what "
                        "they keep",
                        ""}});
  }
  std::map<const void*, std::string> names;
  for (const NamedTensor& named : named_parameters(layers)) names[named.tensor.unsafeGetTensorImpl()] = named.name;
  for (const at::Tensor& parameter : synced.modules().parameters())
    names_.push_back(names.at(parameter.unsafeGetTensorImpl()));
}

// Where something is sharded the optimizer updates this rank's range of each unit.
std::vector<ModuleCheckpoint::Part> ModuleCheckpoint::parts_of(size_t updated) const {
  const ParamStore& store = synced_.store();
  std::vector<Part> parts;
  if (store.sharding().what == Sharded::Nothing) {
    const Parameter& param = store.params()[updated];
    return {{names_[updated], param.placement, 0}};
  }
  const OwnedRange& range = store.owned()[updated];
  for (const Parameter& param : store.params()) {
    const int64_t begin = std::max(range.begin, param.offset) - param.offset;
    const int64_t end = std::min(range.end, param.offset + param.num_elements()) - param.offset;
    if (begin >= end) continue;
    for (const Fragment& part : fragments(param.placement, begin, end))
      parts.push_back({names_[param.index], part.placement, param.offset + part.begin - range.begin});
  }
  return parts;
}

namespace {

at::Tensor part_of_flat(const at::Tensor& tensor, const Placement& placement, int64_t at) {
  return tensor.detach().view({-1}).narrow(0, at, num_elements(placement.local_shape)).view(placement.local_shape);
}

}  // namespace

// Whole wherever they are: each rank has them then, and reads them all.
void ModuleCheckpoint::add_weights(std::vector<PlacedTensor>& tensors) const {
  const bool sharded = synced_.store().shards_parameters();
  const Tensors& trained = synced_.modules().parameters();
  for (const NamedTensor& named : named_parameters(layers_)) {
    const bool shared_out =
        sharded && std::ranges::any_of(trained, [&](const at::Tensor& each) { return each.is_same(named.tensor); });
    if (!shared_out) tensors.push_back({named.name, replicated(shape_of(named.tensor)), named.tensor.detach()});
  }
  for (const NamedTensor& named : named_buffers(layers_))
    tensors.push_back({named.name, replicated(shape_of(named.tensor)), named.tensor.detach()});
  for (size_t i = 0; sharded && i < synced_.modules().updated().size(); ++i) {
    for (const Part& part : parts_of(i))
      tensors.push_back(
          {part.name, part.placement, part_of_flat(synced_.modules().updated()[i], part.placement, part.at)});
  }
}

std::vector<PlacedTensor> ModuleCheckpoint::tensors() const {
  std::vector<PlacedTensor> tensors;
  add_weights(tensors);
  for (size_t i = 0; i < synced_.modules().updated().size(); ++i) {
    const auto found = optimizer_.state().find(synced_.modules().updated()[i].unsafeGetTensorImpl());
    if (found == optimizer_.state().end()) continue;
    const State state = state_of(*found->second);
    std::set<std::string> counted;
    for (const Part& part : parts_of(i)) {
      for (const auto& [name, numbers] : state.numbers)
        tensors.push_back({cat(name, "/", part.name), part.placement, part_of_flat(numbers, part.placement, part.at)});
      if (state.steps && counted.insert(part.name).second)
        tensors.push_back({cat(kSteps, "/", part.name), replicated({}), at::full({}, *state.steps, at::kLong)});
    }
  }
  return tensors;
}

void ModuleCheckpoint::load(const std::string& directory) {
  const c10::AutoGradMode no_grad(false);
  const auto saved = read_manifest(found_directory(directory)).tensors;
  std::vector<PlacedTensor> tensors;
  add_weights(tensors);
  std::map<size_t, State> states;
  std::vector<std::pair<size_t, at::Tensor>> steps;
  for (size_t i = 0; i < synced_.modules().updated().size(); ++i) {
    for (const Part& part : parts_of(i)) {
      for (const std::string& name : names_of_numbers(optimizer_)) {
        if (!saved.contains(cat(name, "/", part.name))) continue;
        at::Tensor& numbers = states[i].numbers[name];
        if (!numbers.defined()) numbers = at::zeros_like(synced_.modules().updated()[i].detach());
        tensors.push_back({cat(name, "/", part.name), part.placement, part_of_flat(numbers, part.placement, part.at)});
      }
      if (!saved.contains(cat(kSteps, "/", part.name))) continue;
      steps.push_back({i, at::full({}, int64_t{0}, at::kLong)});
      tensors.push_back({cat(kSteps, "/", part.name), replicated({}), steps.back().second});
    }
  }
  load_checkpoint(directory, tensors);
  for (const auto& [i, count] : steps) states[i].steps = count.item<int64_t>();
  optimizer_.state().clear();
  for (const auto& [i, state] : states)
    optimizer_.state()[synced_.modules().updated()[i].unsafeGetTensorImpl()] = made_state(optimizer_, state);
}

}  // namespace braid
