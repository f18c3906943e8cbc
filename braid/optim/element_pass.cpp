// The elementwise update. On the CPU, each stretch is one parallel region over blocks of the flat buffers. AdamW moves
// 28 bytes of memory per float32 element, 30 with bfloat16 data, and 8 fewer with bfloat16 states, 12 with int8.
#include "braid/optim/element_pass.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>

#include "braid/base/errors.h"
#include "braid/mesh/element_blocks.h"
#include "braid/optim/host_update.h"
#include "braid/optim/on_device.h"

namespace braid::optim {
namespace {

// Returns the part of a stretch whose places are in the chunk; its length is 0 or less if there is none.
StateStretch part_in(const StateStretch& stretch, const Chunk& chunk) {
  const int64_t begin = std::max(stretch.place, chunk.begin) - stretch.place;
  const int64_t end = std::min(stretch.place + stretch.length(), chunk.end) - stretch.place;
  return {stretch.range, stretch.begin + begin, stretch.begin + end, stretch.place + begin};
}

}  // namespace

std::vector<StateStretch> owned_stretches(const param::ParamStore& store, const ParamFilter& takes) {
  std::vector<StateStretch> stretches;
  int64_t place = 0;
  for (size_t r = 0; r < store.owned().size(); ++r) {
    const param::OwnedRange& range = store.owned()[r];
    for (const param::Parameter& param : store.params()) {
      const bool last = param.index + 1 == static_cast<int>(store.params().size());
      const int64_t param_end = last ? store.num_flat() : store.params()[static_cast<size_t>(param.index) + 1].offset;
      const int64_t begin = std::max(range.begin, param.offset), end = std::min(range.end, param_end);
      if (begin >= end || (takes && !takes(param))) continue;
      const int in_range = static_cast<int>(r);
      const bool goes_on = !stretches.empty() && stretches.back().range == in_range && stretches.back().end == begin;
      if (!goes_on) stretches.push_back({in_range, begin, begin, place});
      stretches.back().end = end;
      place += end - begin;
    }
  }
  return stretches;
}

OptimizerState zeros_of(const std::string& name, const std::vector<StateStretch>& stretches,
                        const param::ParamStore& store, at::ScalarType type) {
  const int64_t length = stretches.empty() ? 0 : stretches.back().place + stretches.back().length();
  const auto zeros = [&](int64_t size, at::ScalarType of) {
    if (store.disk()) return store.disk()->zeros(size, of, param::MemoryCategory::Optimizer);
    return at::zeros({size}, store.flat_master().options().dtype(of).requires_grad(false));
  };
  OptimizerState state{name, stretches, zeros(length, type)};
  if (type == at::kByte) state.scales = zeros(length / kStateBlock, at::kFloat);
  return state;
}

// Masters in memory have a backup on a disk with two copies.
bool ElementPass::backs_up() const {
  return store_.disk() && store_.disk()->copies() == param::Copies::Two && !store_.is_on_disk(store_.flat_master());
}

ElementPass::ElementPass(const ElementRule& rule, const ParameterGroups& groups, param::ParamStore& store,
                         const ParamFilter& takes)
    : rule_(rule), groups_(groups), store_(store), stretches_(owned_stretches(store, takes)) {
  check(rule.eps > 0, "eps keeps 0 / 0 out of the padding");
  const bool is_wide = rule.states == StateType::Float32;
  check(is_wide || (store.flat_master().is_cpu() && store.flat_master().scalar_type() == at::kFloat),
        "states of fewer bits have float32 masters on the CPU");
  if (rule.states == StateType::BFloat16) rounding_.emplace(store);
  const bool has_codes = rule.states == StateType::Int8 && rule.num_states() > 0;
  for (const param::Parameter& param : store.params()) {
    check(!has_codes || mesh::has_whole_blocks(param.placement, kStateBlock), "states in 8 bits are of whole blocks");
  }
  if (!store.flat_master().is_cpu()) groups_on_device_ = on_device::bytes(groups.of_blocks(), store);
}

std::vector<OptimizerState> ElementPass::zero_states() const {
  std::vector<OptimizerState> states;
  at::ScalarType type = store_.flat_master().scalar_type();
  if (rule_.states == StateType::BFloat16) type = at::kBFloat16;
  if (rule_.states == StateType::Int8) type = at::kByte;
  const std::vector<StateSign> signs = rule_.state_signs();
  for (const char* name : rule_.state_names()) {
    states.push_back(zeros_of(name, stretches_, store_, type));
    states.back().sign = signs[states.size() - 1];
  }
  return states;
}

// Lists the tensors on disk: states, masters or backups of masters in memory, gradients and rounded data, in this
// order.
void ElementPass::open_disk(std::span<const OptimizerState> states) {
  std::vector<PassTensor> tensors;
  param::DiskTensors& disk = *store_.disk();
  const bool undoes = disk.copies() == param::Copies::Two;
  const auto like = [&](const at::Tensor& flat) {
    return disk.empty(flat.numel(), flat.scalar_type(), disk.category_at(disk.offset(flat)));
  };
  const auto add = [&](const at::Tensor& flat, Access access, int64_t elements_of_slice = param::ParamStore::kAlign) {
    if (!store_.is_on_disk(flat)) return;
    tensors.push_back({flat, access, elements_of_slice * flat.element_size()});
    if (undoes && (access == Access::Update || access == Access::Write)) tensors.back().spare = like(flat);
  };
  for (const OptimizerState& state : states) {
    add(state.flat, Access::Update);
    if (state.scales.defined()) add(state.scales, Access::Update, param::ParamStore::kAlign / kStateBlock);
  }
  add(store_.flat_master(), Access::Update);
  if (backs_up()) {
    const at::ScalarType type = store_.flat_master().scalar_type();
    add(disk.empty(store_.num_owned(), type, param::MemoryCategory::Parameters), Access::Backup);
  }
  add(store_.flat_grads(), Access::Read);
  if (!store_.flat_data().is_same(store_.flat_master())) add(store_.flat_data(), Access::Write);
  on_disk_ = std::make_unique<ChunkedPass>(*store_.disk(), store_.num_owned(), std::move(tensors));
}

template <class T>
struct ElementPass::Places {
  T* master;
  const T* grad;
  std::array<T*, 2> states;
  void* data;
  T* backup = nullptr;       // of the master, if it is in memory and its update may be undone
  NarrowStates narrow = {};  // in place of `states`, if they have fewer bits
};

template <class T>
ElementPass::Places<T> ElementPass::in_memory(const StateStretch& stretch,
                                              std::span<const OptimizerState> states) const {
  const param::OwnedRange& owned = store_.owned()[static_cast<size_t>(stretch.range)];
  const int64_t at = stretch.begin - owned.begin;
  Places<T> places{owned.master.mutable_data_ptr<T>() + at,
                   owned.grad.const_data_ptr<T>() + at,
                   {},
                   static_cast<std::byte*>(owned.data.mutable_data_ptr()) + at * owned.data.element_size()};
  places.narrow.type = rule_.states;
  places.narrow.rounding = rounding_ ? &*rounding_ : nullptr;
  places.narrow.first_block = stretch.begin / param::ParamStore::kAlign;
  for (size_t i = 0; i < states.size(); ++i) {
    const OptimizerState& state = states[i];
    auto* const first =
        static_cast<std::byte*>(state.flat.mutable_data_ptr()) + stretch.place * state.flat.element_size();
    if (rule_.states == StateType::Float32) {
      places.states[i] = reinterpret_cast<T*>(first);
      continue;
    }
    places.narrow.at[i] = first;
    places.narrow.signs[i] = state.sign;
    if (state.scales.defined()) {
      places.narrow.scales[i] = state.scales.mutable_data_ptr<float>() + stretch.place / kStateBlock;
    }
  }
  return places;
}

// Takes the tensors in the order of open_disk().
template <class T>
ElementPass::Places<T> ElementPass::in_chunk(const StateStretch& stretch, const Chunk& chunk) const {
  Places<T> places = in_memory<T>(stretch, {});
  size_t next = 0;
  const int64_t from = stretch.place - chunk.begin;
  const auto at = [&](int64_t bytes) { return chunk.memory[next++] + bytes; };
  const std::vector<StateSign> signs = rule_.state_signs();
  for (size_t i = 0; i < signs.size(); ++i) {
    if (rule_.states == StateType::Float32) {
      places.states[i] = reinterpret_cast<T*>(at(from * int64_t{sizeof(T)}));
      continue;
    }
    const bool has_codes = rule_.states == StateType::Int8;
    places.narrow.at[i] = at(from * (has_codes ? 1 : int64_t{sizeof(Bf16)}));
    places.narrow.signs[i] = signs[i];
    if (has_codes) places.narrow.scales[i] = reinterpret_cast<float*>(at(from / kStateBlock * int64_t{sizeof(float)}));
  }
  const auto wide = [&] { return at(from * int64_t{sizeof(T)}); };
  if (store_.is_on_disk(store_.flat_master())) places.master = reinterpret_cast<T*>(wide());
  if (backs_up()) places.backup = reinterpret_cast<T*>(wide());
  if (store_.is_on_disk(store_.flat_grads())) places.grad = reinterpret_cast<const T*>(wide());
  const at::Tensor& data = store_.flat_data();
  if (!data.is_same(store_.flat_master()) && store_.is_on_disk(data)) places.data = at(from * data.element_size());
  return places;
}

template <class Call>
void ElementPass::with_factors(const OptimizerStep& step, int64_t number, const Call& call) const {
  const auto as = [&]<class T>(std::type_identity<T>) {
    with_factors_type<T>(rule_, [&](auto type) {
      using Factors = typename decltype(type)::type;
      std::vector<Factors> of_groups;
      for (const auto& [lr_scale, weight_decay] : groups_.rates()) {
        of_groups.push_back(Factors::of(rule_, ElementStep{step.lr * lr_scale, step.grad_scale, weight_decay, number}));
      }
      call(of_groups);
    });
  };
  const bool is_double = store_.flat_master().scalar_type() == at::kDouble;
  is_double ? as(std::type_identity<double>()) : as(std::type_identity<float>());
}

void ElementPass::run(const OptimizerStep& step, int64_t number, std::span<const OptimizerState> states) {
  if (store_.disk()) {
    begin(step, number, states);
    return finish();
  }
  with_factors(step, number, [&]<class Factors>(const std::vector<Factors>& of_groups) {
    for (const StateStretch& stretch : stretches_) {
      auto places = in_memory<typename Factors::Number>(stretch, states);
      places.narrow.step = number;
      update(stretch, of_groups, places);
    }
  });
}

void ElementPass::begin(const OptimizerStep& step, int64_t number, std::span<const OptimizerState> states,
                        PassMode mode) {
  if (stretches_.empty()) return;  // all parameters of the rank are frozen
  if (!on_disk_) open_disk(states);
  with_factors(step, number, [&]<class Factors>(const std::vector<Factors>& of_groups) {
    on_disk_->begin(mode, [this, number, of_groups, mode](const Chunk& chunk) {
      for (const StateStretch& stretch : stretches_) {
        const StateStretch part = part_in(stretch, chunk);
        if (part.length() <= 0) continue;
        auto places = in_chunk<typename Factors::Number>(part, chunk);
        places.narrow.step = number;
        if (mode == PassMode::Speculative && places.backup) std::copy_n(places.master, part.length(), places.backup);
        if (mode == PassMode::Again || mode == PassMode::Undo) restore(part, places);
        if (mode != PassMode::Undo) update(part, of_groups, places);
      }
    });
  });
}

// Restores weights in memory, where masters on disk are rounded to data in memory.
template <class T>
void ElementPass::restore(const StateStretch& stretch, const Places<T>& places) const {
  if (places.backup) std::copy_n(places.backup, stretch.length(), places.master);
  if constexpr (std::is_same_v<T, float>) {
    if (!store_.is_on_disk(store_.flat_master())) return;
    const at::ScalarType type = store_.flat_data().scalar_type();
    const int lanes = static_cast<int>(stretch.length());
    if (type == at::kBFloat16) round_lanes(static_cast<Bf16*>(places.data), places.master, lanes);
    if (type == at::kHalf) round_lanes(static_cast<c10::Half*>(places.data), places.master, lanes);
  }
}

template <class Factors>
void ElementPass::update(const StateStretch& stretch, const std::vector<Factors>& of_groups,
                         const Places<typename Factors::Number>& places) const {
  using T = typename Factors::Number;
  const int64_t block = stretch.begin / param::ParamStore::kAlign;
  const ElementRange<T> range{places.master, places.grad, places.states[0], places.states[1], stretch.length()};
  const at::ScalarType type = c10::typeMetaToScalarType(store_.flat_data().dtype());
  if (groups_on_device_.defined()) {
    return on_device::update(groups_on_device_.narrow(0, block, stretch.length() / param::ParamStore::kAlign),
                             on_device::Elements<T>{range, places.data, type}, of_groups);
  }
  const uint8_t* const group_of_block = groups_.of_blocks().data() + block;
  const NarrowStates& narrow = places.narrow;
  if constexpr (std::is_same_v<T, float>) {
    if (type == at::kBFloat16)
      return update_on_host(range, static_cast<Bf16*>(places.data), group_of_block, of_groups, narrow);
    if (type == at::kHalf)
      return update_on_host(range, static_cast<c10::Half*>(places.data), group_of_block, of_groups, narrow);
  }
  update_on_host(range, static_cast<NoData*>(places.data), group_of_block, of_groups, narrow);
}

}  // namespace braid::optim
