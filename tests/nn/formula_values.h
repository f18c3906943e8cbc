// Values that this test suite and tools/reference/model_numbers.py both compute exactly: a hash of (name, index).
#pragma once

#include <ATen/ops/empty.h>

#include <cstdint>
#include <string>

namespace braid {

inline uint64_t formula_bits(const std::string& name, uint64_t index) {
  uint64_t key = 0xCBF29CE484222325;
  for (const char c : name) key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// One of the 4096 multiples of 2^-12 in [-0.5, 0.5): exact in float32.
inline double formula_value(const std::string& name, uint64_t index) {
  return static_cast<double>(formula_bits(name, index) >> 52) / 4096 - 0.5;
}

// float64, contiguous.
inline at::Tensor formula_tensor(const std::string& name, at::IntArrayRef shape) {
  at::Tensor out = at::empty(shape, at::kDouble);
  for (int64_t i = 0; i < out.numel(); ++i) out.data_ptr<double>()[i] = formula_value(name, i);
  return out;
}

// int64 in [0, bound).
inline at::Tensor formula_integers(const std::string& name, at::IntArrayRef shape, int64_t bound) {
  at::Tensor out = at::empty(shape, at::kLong);
  for (int64_t i = 0; i < out.numel(); ++i) out.data_ptr<int64_t>()[i] = formula_bits(name, i) % bound;
  return out;
}

// Initial values of a parameter: norm weights around 1, all others around 0.
inline at::Tensor formula_parameter(const std::string& name, at::IntArrayRef shape) {
  const bool named = name.find("ln_") != std::string::npos || name.find("norm_") != std::string::npos;
  const bool norm = named && name.ends_with(".weight");
  at::Tensor out = formula_tensor(name, shape);
  return norm ? out.mul_(0.5).add_(1) : out.mul_(0.25);
}

}  // namespace braid
