// bias + GELU, SwiGLU, rotary.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>

#include "bench/kernels/kernel_case.h"
#include "braid/base/text.h"
#include "braid/nn/kernels/activations.h"
#include "braid/nn/kernels/rotary.h"

namespace braid::bench {

// Kernels that overwrite their input get it back before each run.
struct Restored {
  explicit Restored(const at::Tensor& from) : original(from), x(from.clone()) {}
  void restore() const { x.copy_(original); }
  at::Tensor original, x;
};

inline void add_gelu_cases(std::vector<KernelCase>& cases, at::IntArrayRef shape, at::ScalarType dtype) {
  const auto h = std::make_shared<Restored>(random(shape, dtype));
  const at::Tensor bias = random({shape[1]}, dtype), dy = random(shape, dtype);
  const std::string size = cat(shape[0], " x ", shape[1]);
  cases.push_back({"bias + GELU, forward",
                   size,
                   bytes_of({h->x, dy}),
                   {},
                   [=] { kernels::bias_gelu(h->x, bias); },
                   [=] { at::gelu(h->x.add(bias), "tanh"); }});
  cases.push_back({"bias + GELU, backward", size, bytes_of({h->x, dy, h->x}), [=] { h->restore(); },
                   [=] { kernels::bias_gelu_backward_(h->x, bias, dy); },
                   [=] { at::gelu_backward(dy, h->x, "tanh").sum(0); }});
}

inline void add_swiglu_cases(std::vector<KernelCase>& cases, at::IntArrayRef shape, at::ScalarType dtype) {
  const auto gate_up = std::make_shared<Restored>(random({shape[0], 2 * shape[1]}, dtype));
  const at::Tensor dy = random(shape, dtype);
  const std::string size = cat(shape[0], " x ", shape[1]);
  cases.push_back({"SwiGLU, forward",
                   size,
                   bytes_of({gate_up->x, dy}),
                   {},
                   [=] { kernels::swiglu(gate_up->x); },
                   [=] {
                     const auto halves = gate_up->x.chunk(2, -1);
                     at::silu(halves[0]).mul_(halves[1]);
                   }});
  cases.push_back({"SwiGLU, backward", size, bytes_of({gate_up->x, dy, gate_up->x}), [=] { gate_up->restore(); },
                   [=] { kernels::swiglu_backward_(gate_up->x, dy); },
                   [=] {
                     const auto halves = gate_up->x.chunk(2, -1);
                     const at::Tensor d = at::empty_like(gate_up->x);
                     const auto d_halves = d.chunk(2, -1);
                     d_halves[0].copy_(at::silu_backward(dy.mul(halves[1]), halves[0]));
                     d_halves[1].copy_(at::silu(halves[0]).mul_(dy));
                   }});
}

struct RotarySize {
  int64_t b, t, heads, kv_heads, head_width;
};
inline void add_rotary_case(std::vector<KernelCase>& cases, const RotarySize& s, at::ScalarType dtype) {
  const int64_t turned = s.heads + s.kv_heads, half = s.head_width / 2;
  const at::Tensor x = random({s.b, s.t, (turned + s.kv_heads) * s.head_width}, dtype);
  const at::Tensor angles = random({s.t, half}, at::kFloat);
  const kernels::Rotation rotation{angles.cos(), angles.sin(), turned};
  cases.push_back({"rotary, in place",
                   cat(s.b * s.t, " x ", turned, " heads of ", s.head_width),
                   2.0 * s.b * s.t * turned * s.head_width * x.element_size(),
                   {},
                   [=] { kernels::rotate_(x, rotation, kernels::Turn::Forward); },
                   [=] {
                     const at::Tensor heads = x.narrow(2, 0, turned * 2 * half).view({s.b, s.t, turned, 2, half});
                     const at::Tensor cos = rotation.cos.unsqueeze(1), sin = rotation.sin.unsqueeze(1);
                     const at::Tensor low = heads.select(3, 0), high = heads.select(3, 1);
                     const at::Tensor turned_low = low.mul(cos).sub_(high.mul(sin));
                     high.copy_(high.mul(cos).add_(low.mul(sin)));
                     low.copy_(turned_low);
                   }});
}

}  // namespace braid::bench
