// The loops of an elementwise update on the CPU, in parallel over blocks of the flat buffers.
#pragma once

#include <ATen/Parallel.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "braid/base/bfloat16.h"
#include "braid/optim/element_update.h"
#include "braid/optim/narrow_states.h"
#include "braid/param/param_store.h"

namespace braid::optim {

inline constexpr int64_t kGrain =
    16 * param::ParamStore::kAlign;  // elements; below it a second thread costs more than it saves

// Stands for the rounded data if the masters are the data themselves: nothing is written.
struct NoData {};

inline void round_lanes(NoData*, const void*, int) {}
inline void round_lanes(Bf16* __restrict__ data, const float* __restrict__ master, int lanes) {
#pragma GCC ivdep
  for (int j = 0; j < lanes; ++j) data[j] = narrow(master[j]);
}
inline void round_lanes(c10::Half* __restrict__ data, const float* __restrict__ master, int lanes) {
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

// Updates elements whose states have fewer bits. Each block of states is widened in the cache, updated and stored.
template <class Factors, class Data>
void update_narrow(const Factors& factors, const ElementRange<float>& range, Data* data, NarrowStates states) {
  constexpr int64_t kBlock = param::ParamStore::kAlign;
  alignas(64) std::array<WideBlock, 2> wide;
  for (int64_t at = 0; at < range.count; at += kBlock, states = states.from(1)) {
    for (size_t i = 0; i < Factors::kStates; ++i) read_state(states, i, wide[i]);
    update_lanes(factors,
                 ElementRange<float>{range.weight + at, range.grad + at, wide[0].data(), wide[1].data(), kBlock},
                 data + at);
    store_states(wide, states);
  }
}

template <class Factors, class T, class Data>
void update_part(const Factors& factors, const ElementRange<T>& range, Data* data, const NarrowStates& states) {
  if constexpr (std::is_same_v<T, float> && Factors::kStates > 0) {
    if (states.type != StateType::Float32) return update_narrow(factors, range, data, states);
  }
  update_lanes(factors, range, data);
}

template <class T>
ElementRange<T> part_of(const ElementRange<T>& whole, int64_t begin, int64_t end) {
  const auto from = [&](T* state) { return state ? state + begin : nullptr; };
  return {whole.weight + begin, whole.grad + begin, from(whole.first), from(whole.second), end - begin};
}

// Updates each run of blocks of one parameter group with the factors of that group. The states are `whole`'s, or
// `narrow` if it holds any.
template <class Factors, class T, class Data>
void update_on_host(const ElementRange<T>& whole, Data* data, const uint8_t* group_of_block,
                    const std::vector<Factors>& of_groups, const NarrowStates& narrow) {
  constexpr int64_t kAlign = param::ParamStore::kAlign;
  at::parallel_for(0, whole.count / kAlign, kGrain / kAlign, [&](int64_t block, int64_t last) {
    while (block < last) {
      const uint8_t group = group_of_block[block];
      const uint8_t* const end =
          std::find_if(group_of_block + block, group_of_block + last, [&](uint8_t other) { return other != group; });
      const int64_t next = end - group_of_block;
      const ElementRange<T> part = part_of(whole, block * kAlign, next * kAlign);
      update_part(of_groups[group], part, data + block * kAlign, narrow.from(block));
      block = next;
    }
  });
}

}  // namespace braid::optim
