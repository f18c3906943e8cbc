// Moves parameters into a store. A parameter that occurs in two places is tied and has a unit of its own.
#include "braid/module/module_store.h"

#include <ATen/MemoryOverlap.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/module/layer_facts.h"
#include "braid/spec/combine.h"

namespace braid::modules {

KeptBuffers::KeptBuffers(Tensors buffers) : buffers_(std::move(buffers)) {
  for (const at::Tensor& buffer : buffers_) kept_.push_back(buffer.detach().clone());
}

KeptBuffers::~KeptBuffers() {
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(kept_[i]);
}

namespace {

// Modules do not mark parameters for weight decay. As in braid's own models, vectors (norms and biases) have none.
model::WeightDecay decay_of(const at::Tensor& tensor) {
  return tensor.dim() > 1 ? model::WeightDecay::Yes : model::WeightDecay::No;
}

// The name of a parameter and the layers that use it. Parameters are compared by identity.
struct Use {
  std::string name;
  std::vector<int> layers;
};

using Found = std::vector<std::pair<at::Tensor, Use>>;

Found trained_parameters(const LayerList& layers) {
  Found found;
  std::map<const void*, size_t> places;
  for (int l = 0; l < layers.size(); ++l) {
    int number = 0;
    for (const at::Tensor& tensor : braid::modules::parameters(layers[l])) {
      const std::string name = cat(layers[l].name, ".", number++);
      if (!tensor.requires_grad()) continue;
      const auto [place, fresh] = places.try_emplace(tensor.unsafeGetTensorImpl(), found.size());
      if (fresh) found.push_back({tensor, {name, {}}});
      found[place->second].second.layers.push_back(l);
    }
  }
  return found;
}

std::vector<Problem> problems(const Found& found) {
  std::vector<Problem> problems;
  for (const auto& [tensor, use] : found) {
    const at::ScalarType type = tensor.scalar_type(), first = found.front().first.scalar_type();
    const auto refuse = [&](std::string rule) {
      problems.push_back({use.name, c10::toString(type), std::move(rule), ""});
    };
    if (type != at::kFloat && type != at::kDouble) {
      refuse(cat("must be float32 or float64 to be trained by data ranks, since ",
                 spec::combination(spec::Feature::NarrowWeights, spec::Feature::UserModules).why));
    }
    if (type != first) refuse(cat("must have the type of ", found.front().second.name, ", ", c10::toString(first)));
    if (!tensor.is_cpu()) refuse("must be on the CPU");
  }
  return problems;
}

struct Named {
  std::string name;
  at::Tensor tensor;
};

// Returns the parameters and buffers of the layers, each once.
std::vector<Named> parameters_and_buffers(const LayerList& layers) {
  std::vector<Named> all;
  std::set<const void*> seen;
  const auto add = [&](std::string name, const at::Tensor& tensor) {
    if (seen.insert(tensor.unsafeGetTensorImpl()).second) all.push_back({std::move(name), tensor});
  };
  for (int l = 0; l < layers.size(); ++l) {
    int number = 0;
    for (const at::Tensor& tensor : parameters(layers[l])) add(cat(layers[l].name, ".", number++), tensor);
    number = 0;
    for (const at::Tensor& tensor : buffers(layers[l])) add(cat("buffer ", number++, " of ", layers[l].name), tensor);
  }
  return all;
}

bool overlap(const at::Tensor& a, const at::Tensor& b) {
  const at::MemOverlapStatus status = at::get_overlap_status(a, b);
  return status == at::MemOverlapStatus::Full || status == at::MemOverlapStatus::Partial;
}

// Returns a problem for each trained parameter whose memory another tensor of the layers has too. The parameter moves
// to the store, and the other tensor would keep the old values.
std::vector<Problem> memory_problems(const LayerList& layers) {
  std::vector<Problem> problems;
  const std::vector<Named> all = parameters_and_buffers(layers);
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < all.size(); ++j) {
      const bool once = j < i || !all[j].tensor.requires_grad();
      if (i == j || !once || !all[i].tensor.requires_grad() || !overlap(all[i].tensor, all[j].tensor)) continue;
      problems.push_back(
          {all[i].name, "", cat("must not share memory with ", all[j].name, ", unless both are one tensor"), ""});
    }
  }
  return problems;
}

}  // namespace

std::vector<Problem> storage_problems(const LayerList& layers) {
  std::vector<Problem> found = problems(trained_parameters(layers));
  for (Problem& problem : memory_problems(layers)) found.push_back(std::move(problem));
  return found;
}

std::vector<layout::BlockSpec> ModuleStore::collect(const LayerList& layers) {
  const Found found = trained_parameters(layers);
  auto faults = storage_problems(layers);
  if (found.empty()) faults.push_back({"layers", "", "must have a parameter that requires a gradient", ""});
  if (!faults.empty()) throw ConfigError(std::move(faults));
  std::vector<layout::BlockSpec> blocks;
  for (int l = 0; l < layers.size(); ++l) blocks.push_back({layers[l].name, {}});
  for (const auto& [tensor, use] : found) {
    parameters_.push_back(tensor);
    const int uses = static_cast<int>(use.layers.size());
    for (int place = 0; place < uses; ++place) {
      layout::ParamSpec spec{use.name, mesh::replicated(shape_of(tensor)), {}, decay_of(tensor), place, uses};
      blocks[use.layers[place]].params.push_back(std::move(spec));
    }
  }
  return blocks;
}

ModuleStore::ModuleStore(const LayerList& layers, const param::Sharding& sharding,
                         const std::optional<param::DiskSpace>& disk) {
  const std::vector<layout::BlockSpec> blocks = collect(layers);
  const param::StoreOptions options{Reduction::Fast, parameters_.front().options().requires_grad(false), 0, sharding,
                                    disk};
  store_ = std::make_unique<param::ParamStore>(blocks, options);
  move_in();
  if (store_->disk()) store_->disk()->begin_checks();
  if (sharding.what == param::Sharded::Nothing) {
    updated_ = parameters_;
  } else {
    for (const param::OwnedRange& range : store_->owned())
      updated_.push_back(range.master.detach().requires_grad_(true));
  }
}

void ModuleStore::move_in(const param::Parameter& param) {
  const at::Tensor place = param.data.detach();
  place.copy_(parameters_[param.index]);
  parameters_[param.index].set_data(place);
}

// Sharded parameters are moved unit by unit, so that no rank ever holds copies of all of them.
void ModuleStore::move_in() {
  const c10::AutoGradMode no_grad(false);
  if (!store_->shards_parameters()) {
    for (const param::Parameter& param : store_->params()) move_in(param);
    return;
  }
  for (size_t u = 0; u < store_->units().size(); ++u) {
    const param::ShardUnit& unit = store_->units()[u];
    const param::OwnedRange& mine = store_->owned()[u];
    store_->allocate_unit(static_cast<int>(u));
    store_->unit_data(static_cast<int>(u)).zero_();  // between parameters too
    for (int p = unit.first_param; p < unit.first_param + unit.num_params; ++p) move_in(store_->params()[p]);
    mine.data.copy_(store_->unit_data(static_cast<int>(u)).narrow(0, mine.begin - unit.begin, mine.length()));
    store_->free_unit(static_cast<int>(u));
  }
}

void ModuleStore::bind_gradients() const {
  if (updated_.front().is_same(parameters_.front())) {
    for (const param::Parameter& param : store_->params()) {
      const at::Tensor& parameter = parameters_[param.index];
      if (!parameter.requires_grad()) param.main_grad.zero_();
      parameter.mutable_grad() = parameter.requires_grad() ? param.main_grad : at::Tensor();
    }
    return;
  }
  for (size_t i = 0; i < updated_.size(); ++i) {
    // Autograd does not see a detached tensor as a view, so zero_grad() accepts it.
    updated_[i].mutable_grad() = store_->owned()[i].grad.detach();
  }
}

void ModuleStore::clear_reset_gradients() const {
  for (const param::Parameter& param : store_->params()) {
    if (!parameters_[param.index].grad().defined()) param.main_grad.zero_();
  }
}

bool ModuleStore::holds(const param::Parameter& param) const {
  const at::Tensor& own = parameters_[param.index];
  const auto same_storage = [](const at::Tensor& a, const at::Tensor& b) {
    return a.storage().unsafeGetStorageImpl() == b.storage().unsafeGetStorageImpl();
  };
  return same_storage(own, param.data) && own.storage_offset() == param.data.storage_offset() &&
         own.sizes() == param.data.sizes() && own.strides() == param.data.strides();
}

// Copies values into the store. Between steps, sharded parameters have only this rank's range, not a whole buffer.
void ModuleStore::take_over(const param::Parameter& param, const at::Tensor& values) const {
  if (store_->shards_parameters()) {
    const param::OwnedRange& mine = store_->owned()[store_->unit_of(param)];
    const int64_t begin = std::max(mine.begin, param.offset);
    const int64_t end = std::min(mine.end, param.offset + param.num_elements());
    if (begin < end) {
      const at::Tensor part = values.contiguous().view({-1}).narrow(0, begin - param.offset, end - begin);
      const auto copy = [&](const at::Tensor& range) { range.narrow(0, begin - mine.begin, end - begin).copy_(part); };
      store_->is_on_disk(mine.master) ? store_->disk()->change(mine.master, copy) : copy(mine.master);
    }
  } else {
    param.data.detach().copy_(values);
  }
  parameters_[param.index].set_data(param.data.detach());
}

void ModuleStore::note_written() const {
  if (store_->has_parameters_on_disk()) store_->disk()->take_written(store_->flat_data());
}

void ModuleStore::note_update() const {
  for (const at::Tensor& parameter : parameters_) parameter.unsafeGetTensorImpl()->bump_version();
}

}  // namespace braid::modules
