// The elementwise update. On the CPU, each stretch is one parallel region over blocks of the flat buffers. AdamW moves
// 28 bytes of memory per float32 element, 30 with bfloat16 data, and 8 fewer with bfloat16 states.
#include "braid/optim/element_pass.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>

#include "braid/base/bfloat16.h"
#include "braid/base/errors.h"
#include "braid/optim/on_device.h"
#include "braid/optim/stochastic_rounding.h"

namespace braid::optim {
namespace {

constexpr int64_t kGrain =
    16 * param::ParamStore::kAlign;  // elements; below it a second thread costs more than it saves

// Stands for the rounded data if the masters are the data themselves: nothing is written.
struct NoData {};

void round_lanes(NoData*, const void*, int) {}
void round_lanes(Bf16* __restrict__ data, const float* __restrict__ master, int lanes) {
#pragma GCC ivdep
  for (int j = 0; j < lanes; ++j) data[j] = narrow(master[j]);
}
void round_lanes(c10::Half* __restrict__ data, const float* __restrict__ master, int lanes) {
  for (int j = 0; j < lanes; ++j) data[j] = c10::Half(master[j]);
}

// The loops have a constant length and their memory cannot overlap, so that g++ 12 vectorises them. Local copies of the
// elements would also show that nothing overlaps, but their 16-byte stores before 32-byte loads defeat store
// forwarding, which takes three times as long.
template <class Factors, class T, class Data>
void update_lanes(const Factors& of_group, const ElementRange<T>& range, Data* data) {
  constexpr int kLanes = 64;
  static_assert(param::ParamStore::kAlign % kLanes == 0);
  const Factors factors = of_group;
  T* __restrict__ weight = range.weight;
  const T* __restrict__ grad = range.grad;
  T* __restrict__ first = range.first;
  T* __restrict__ second = range.second;
  for (const T* end = weight + range.count; weight != end;) {
#pragma GCC ivdep
    for (int j = 0; j < kLanes; ++j) {
      if constexpr (Factors::kStates == 0) element_update(weight[j], grad[j], factors);
      if constexpr (Factors::kStates == 1) element_update(weight[j], grad[j], first[j], factors);
      if constexpr (Factors::kStates == 2) element_update(weight[j], grad[j], first[j], second[j], factors);
    }
    round_lanes(data, weight, kLanes);
    weight += kLanes, grad += kLanes, data += kLanes;
    if constexpr (Factors::kStates > 0) first += kLanes;
    if constexpr (Factors::kStates > 1) second += kLanes;
  }
}

// Updates elements whose states are in bfloat16. Each block of states is widened in the cache, updated and rounded.
template <class Factors, class Data>
void update_rounded(const Factors& factors, const ElementRange<float>& range, Data* data, RoundedStates states) {
  constexpr int64_t kBlock = param::ParamStore::kAlign;
  alignas(64) float wide[2][kBlock];
  alignas(64) uint32_t words[kBlock];
  for (int64_t at = 0; at < range.count; at += kBlock, states = states.from(1)) {
    for (int i = 0; i < Factors::kStates; ++i) widen_block(states.at[i], wide[i]);
    update_lanes(factors, ElementRange<float>{range.weight + at, range.grad + at, wide[0], wide[1], kBlock}, data + at);
    states.rounding->draw(states.first_block, states.step, words);
    for (int i = 0; i < Factors::kStates; ++i) round_block(wide[i], words, i, states.at[i]);
  }
}

template <class Factors, class T, class Data>
void update_part(const Factors& factors, const ElementRange<T>& range, Data* data, const RoundedStates& states) {
  if constexpr (std::is_same_v<T, float> && Factors::kStates > 0) {
    if (states.rounding) return update_rounded(factors, range, data, states);
  }
  update_lanes(factors, range, data);
}

template <class T>
ElementRange<T> part_of(const ElementRange<T>& whole, int64_t begin, int64_t end) {
  const auto from = [&](T* state) { return state ? state + begin : nullptr; };
  return {whole.weight + begin, whole.grad + begin, from(whole.first), from(whole.second), end - begin};
}

// Updates each run of blocks of one parameter group with the factors of that group. The states are `whole`'s, or
// `rounded` if it holds any.
template <class Factors, class T, class Data>
void update_on_host(const ElementRange<T>& whole, Data* data, const uint8_t* group_of_block,
                    const std::vector<Factors>& of_groups, const RoundedStates& rounded) {
  constexpr int64_t kAlign = param::ParamStore::kAlign;
  at::parallel_for(0, whole.count / kAlign, kGrain / kAlign, [&](int64_t block, int64_t last) {
    while (block < last) {
      const uint8_t group = group_of_block[block];
      const uint8_t* const end =
          std::find_if(group_of_block + block, group_of_block + last, [&](uint8_t other) { return other != group; });
      const int64_t next = end - group_of_block;
      const ElementRange<T> part = part_of(whole, block * kAlign, next * kAlign);
      update_part(of_groups[group], part, data + block * kAlign, rounded.from(block));
      block = next;
    }
  });
}

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
  if (store.disk()) return {name, stretches, store.disk()->zeros(length, type)};
  return {name, stretches, at::zeros({length}, store.flat_master().options().dtype(type).requires_grad(false))};
}

// Masters in memory have a backup on a disk with two copies.
bool ElementPass::backs_up() const {
  return store_.disk() && store_.disk()->copies() == param::Copies::Two && !store_.is_on_disk(store_.flat_master());
}

ElementPass::ElementPass(const ElementRule& rule, const ParameterGroups& groups, param::ParamStore& store,
                         const ParamFilter& takes)
    : rule_(rule), groups_(groups), store_(store), stretches_(owned_stretches(store, takes)) {
  check(rule.eps > 0, "eps keeps 0 / 0 out of the padding");
  if (rule.states == StateType::BFloat16) {
    check(store.flat_master().is_cpu() && store.flat_master().scalar_type() == at::kFloat,
          "rounded states have float32 masters on the CPU");
    rounding_.emplace(store);
  }
  if (!store.flat_master().is_cpu()) groups_on_device_ = on_device::bytes(groups.of_blocks(), store);
}

std::vector<OptimizerState> ElementPass::zero_states() const {
  std::vector<OptimizerState> states;
  const at::ScalarType type = rounding_ ? at::kBFloat16 : store_.flat_master().scalar_type();
  for (const char* name : rule_.state_names()) states.push_back(zeros_of(name, stretches_, store_, type));
  return states;
}

// Lists the tensors on disk: states, masters or backups of masters in memory, gradients and rounded data, in this
// order.
void ElementPass::open_disk(std::span<const OptimizerState> states) {
  std::vector<PassTensor> tensors;
  param::DiskTensors& disk = *store_.disk();
  const bool undoes = disk.copies() == param::Copies::Two;
  const auto like = [&](const at::Tensor& flat) { return disk.zeros(flat.numel(), flat.scalar_type()); };
  const auto add = [&](const at::Tensor& flat, Access access) {
    if (!store_.is_on_disk(flat)) return;
    tensors.push_back({flat, access, param::ParamStore::kAlign * flat.element_size()});
    if (undoes && (access == Access::Update || access == Access::Write)) tensors.back().spare = like(flat);
  };
  for (const OptimizerState& state : states) add(state.flat, Access::Update);
  add(store_.flat_master(), Access::Update);
  if (backs_up()) add(like(store_.flat_master()), Access::Backup);
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
  T* backup = nullptr;         // of the master, if it is in memory and its update may be undone
  RoundedStates rounded = {};  // in place of `states`, if they are in bfloat16
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
  if (rounding_) places.rounded = {{}, &*rounding_, stretch.begin / param::ParamStore::kAlign};
  for (size_t i = 0; i < states.size(); ++i) {
    if (rounding_) {
      places.rounded.at[i] = static_cast<Bf16*>(states[i].flat.mutable_data_ptr()) + stretch.place;
    } else {
      places.states[i] = states[i].flat.mutable_data_ptr<T>() + stretch.place;
    }
  }
  return places;
}

// Takes the tensors in the order of open_disk().
template <class T>
ElementPass::Places<T> ElementPass::in_chunk(const StateStretch& stretch, const Chunk& chunk) const {
  Places<T> places = in_memory<T>(stretch, {});
  size_t next = 0;
  const auto at = [&](int64_t element_bytes) {
    return chunk.memory[next++] + (stretch.place - chunk.begin) * element_bytes;
  };
  for (size_t i = 0; i < rule_.state_names().size(); ++i) {
    if (rounding_) {
      places.rounded.at[i] = reinterpret_cast<Bf16*>(at(sizeof(Bf16)));
    } else {
      places.states[i] = reinterpret_cast<T*>(at(sizeof(T)));
    }
  }
  if (store_.is_on_disk(store_.flat_master())) places.master = reinterpret_cast<T*>(at(sizeof(T)));
  if (backs_up()) places.backup = reinterpret_cast<T*>(at(sizeof(T)));
  if (store_.is_on_disk(store_.flat_grads())) places.grad = reinterpret_cast<const T*>(at(sizeof(T)));
  const at::Tensor& data = store_.flat_data();
  if (!data.is_same(store_.flat_master()) && store_.is_on_disk(data)) places.data = at(data.element_size());
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
      places.rounded.step = number;
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
        places.rounded.step = number;
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
  const RoundedStates& rounded = places.rounded;
  if constexpr (std::is_same_v<T, float>) {
    if (type == at::kBFloat16)
      return update_on_host(range, static_cast<Bf16*>(places.data), group_of_block, of_groups, rounded);
    if (type == at::kHalf)
      return update_on_host(range, static_cast<c10::Half*>(places.data), group_of_block, of_groups, rounded);
  }
  update_on_host(range, static_cast<NoData*>(places.data), group_of_block, of_groups, rounded);
}

}  // namespace braid::optim
