// One signature for every kind of layer: tensors in, tensors out.
//
// A function of one or several tensors is called with the tensors as arguments. A function of a list (const Tensors&)
// gets the list. It may return a tensor, a list, or a tuple or pair of tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace braid {

using Tensors = std::vector<at::Tensor>;

namespace layer_call {

inline constexpr size_t kMostTensors = 6;  // largest number of arguments; a function of more takes a list

template <size_t>
using TensorAt = const at::Tensor&;

template <class F, class Places>
inline constexpr bool kTakesPlaces = false;
template <class F, size_t... I>
inline constexpr bool kTakesPlaces<F, std::index_sequence<I...>> = std::is_invocable_v<F&, TensorAt<I>...>;
template <class F, size_t N>
inline constexpr bool kTakes = kTakesPlaces<F, std::make_index_sequence<N>>;

template <class F, size_t N = 1>
constexpr bool takes_tensors() {
  if constexpr (N > kMostTensors) {
    return false;
  } else if constexpr (kTakes<F, N>) {
    return true;
  } else {
    return takes_tensors<F, N + 1>();
  }
}

// Throws ConfigError: the function was called with `given` tensors, and takes only the numbers in `taken`.
[[noreturn]] void refuse_count(size_t given, const std::vector<size_t>& taken);

template <class Result>
Tensors as_tensors(Result&& result) {
  using Plain = std::decay_t<Result>;
  if constexpr (std::is_convertible_v<Result, at::Tensor>) {
    return {at::Tensor(std::forward<Result>(result))};
  } else if constexpr (std::is_same_v<Plain, Tensors>) {
    return std::forward<Result>(result);
  } else {
    return std::apply([](const auto&... tensors) { return Tensors{tensors...}; }, result);
  }
}

template <class F, size_t... I>
Tensors call_with(F& function, const Tensors& tensors, std::index_sequence<I...>) {
  return as_tensors(function(tensors[I]...));
}

template <size_t N, class F>
Tensors call_counted(F& function, const Tensors& tensors, std::vector<size_t> taken = {}) {
  if constexpr (N > kMostTensors) {
    refuse_count(tensors.size(), taken);
  } else {
    if constexpr (kTakes<F, N>) {
      if (tensors.size() == N) return call_with(function, tensors, std::make_index_sequence<N>());
      taken.push_back(N);
    }
    return call_counted<N + 1>(function, tensors, std::move(taken));
  }
}

// A module's forward as a function.
template <class M>
struct ModuleForward {
  std::shared_ptr<M> module;
  template <class... Args>
  auto operator()(Args&&... args) const -> decltype(std::declval<M&>().forward(args...)) {
    return module->forward(args...);
  }
};

template <class F>
Tensors call(F& function, const Tensors& tensors) {
  if constexpr (takes_tensors<F>()) {
    return call_counted<1>(function, tensors);
  } else {
    static_assert(std::is_invocable_v<F&, const Tensors&>, "a layer takes tensors, or a list of tensors");
    return as_tensors(function(tensors));
  }
}

}  // namespace layer_call
}  // namespace braid
