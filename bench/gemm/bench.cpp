// Rates of a GPT-2's matrix products: the library's, ours where there is one, against the processor's peak measured in
// the same run with multiplications that touch no memory. It does not judge; README.md has the numbers.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "braid/base/clock.h"
#include "braid/nn/kernels/amx_registers.h"
#include "braid/nn/kernels/product.h"
#include "braid/nn/kernels/product_amx.h"
#include "braid/nn/kernels/product_bf16.h"

namespace {

// With one thread the processor time of that thread, so that other programs count less; with more, the wall's.
double seconds_now() {
  if (at::get_num_threads() > 1) return braid::now_seconds();
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

constexpr int64_t kShapes[][2] = {{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}, {50304, 768}};
constexpr int64_t kRowCounts[] = {128, 256, 1024};

// Best of interleaved rounds: other programs only ever add time.
struct Contestant {
  std::function<void()> run;
  double seconds = 1e9;
};

void race(std::vector<Contestant>& contestants, double operations) {
  const int rounds = static_cast<int>(std::clamp(4e10 / operations, 5.0, 60.0));
  for (int round = 0; round <= rounds; ++round) {
    for (Contestant& c : contestants) {
      const double begin = seconds_now();
      c.run();
      const double elapsed = seconds_now() - begin;
      if (round > 0) c.seconds = std::min(c.seconds, elapsed);
    }
  }
}

#if defined(__x86_64__)
constexpr int kChains = 12;  // with their operand they fit the sixteen registers of AVX2
constexpr int64_t kTurns = 1'000'000;

__attribute__((target("avx512f,avx512bf16"))) float bf16_turns(int64_t turns) {
  __m512 sums[kChains];
  const __m512bh one = (__m512bh)_mm512_set1_epi32(0x3F803F80);
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) sums[k] = _mm512_dpbf16_ps(sums[k], one, one);
  }
  float total = 0;
  for (const __m512& sum : sums) total += sum[0];
  return total;
}

BRAID_AMX float amx_turns(int64_t turns) {
  const braid::kernels::WholeTiles registers;
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t i = 0; i < 2 * turns; ++i) {
    _tile_dpbf16ps(2, 0, 1);
    _tile_dpbf16ps(3, 0, 1);
    _tile_dpbf16ps(4, 0, 1);
    _tile_dpbf16ps(5, 0, 1);
    _tile_dpbf16ps(6, 0, 1);
    _tile_dpbf16ps(7, 0, 1);
  }
  return 0;
}

__attribute__((target("avx512f"))) float avx512_turns(int64_t turns) {
  __m512 sums[kChains];
  const __m512 one = _mm512_set1_ps(1);
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) sums[k] = _mm512_fmadd_ps(one, one, sums[k]);
  }
  float total = 0;
  for (const __m512& sum : sums) total += sum[0];
  return total;
}

float avx2_turns(int64_t turns) {
  __m256 sums[kChains];
  const __m256 one = _mm256_set1_ps(1);
  for (int k = 0; k < kChains; ++k) sums[k] = _mm256_set1_ps(static_cast<float>(k));
  for (int64_t i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) sums[k] = _mm256_fmadd_ps(one, one, sums[k]);
  }
  float total = 0;
  for (const __m256& sum : sums) total += sum[0];
  return total;
}

// GFLOP/s of all threads together.
double peak(float (*turns)(int64_t), double operations_per_turn) {
  const int threads = at::get_num_threads();
  volatile float sink = 0;
  std::vector<Contestant> one{{[&] {
    at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (; begin < end; ++begin) sink = turns(kTurns);
    });
  }}};
  race(one, 2e9);
  return operations_per_turn * kChains * kTurns * threads / one[0].seconds / 1e9;
}

void print_peaks() {
  const bool wide = __builtin_cpu_supports("avx512f");
  std::printf("peak of float32: %.0f\n", wide ? peak(avx512_turns, 32) : peak(avx2_turns, 16));
  if (braid::kernels::has_product_bf16()) std::printf("peak of bfloat16: %.0f\n", peak(bf16_turns, 64));
  if (braid::kernels::has_product_amx())
    std::printf("peak of bfloat16 by AMX: %.0f\n", peak(amx_turns, 2 * 16 * 16 * 32));
}
#else
void print_peaks() {}
#endif

// Races products of 2 n o i operations, and prints a row of GFLOP/s.
void race_products(std::vector<Contestant>& contestants, int64_t o, int64_t i, int64_t n) {
  const double operations = 2.0 * static_cast<double>(n * o * i);
  race(contestants, operations);
  std::printf("| %ld x %ld | %ld |", static_cast<long>(o), static_cast<long>(i), static_cast<long>(n));
  for (const Contestant& c : contestants) std::printf(" %.0f |", operations / c.seconds / 1e9);
  std::printf("\n");
  std::fflush(stdout);
}

// dW [o, i] = dy^T x. The library's product rounds to bfloat16, so a float32 slot costs an addition more.
void weight_gradients(int64_t o, int64_t i, int64_t n) {
  const at::Tensor dy = at::randn({n, o}).to(at::kBFloat16), x = at::randn({n, i}).to(at::kBFloat16);
  const at::Tensor slot = at::empty({o, i}, at::kFloat).zero_();
  at::Tensor rounded = at::empty({o, i}, at::kBFloat16);
  std::vector<Contestant> contestants{
      {[&] { braid::kernels::accumulate_product(slot, dy, x, 0); }},
      {[&] { braid::kernels::accumulate_product(slot, dy, x, 1); }},
      {[&] { at::mm_out(rounded, dy.t(), x); }},
      {[&] { slot.add_(at::mm_out(rounded, dy.t(), x)); }},
  };
  race_products(contestants, o, i, n);
}

// y = x W^T, dX = dY W and dW = dY^T X of the library.
void library_products(const std::vector<at::ScalarType>& types, int64_t o, int64_t i, int64_t n) {
  std::vector<Contestant> contestants;
  for (const at::ScalarType type : types) {
    const at::Tensor x = at::randn({n, i}).to(type), dy = at::randn({n, o}).to(type), w = at::randn({o, i}).to(type);
    const at::Tensor y = at::empty({n, o}, type), dx = at::empty({n, i}, type), dw = at::empty({o, i}, type);
    contestants.push_back({[=, out = y]() mutable { at::mm_out(out, x, w.t()); }});
    contestants.push_back({[=, out = dx]() mutable { at::mm_out(out, dy, w); }});
    contestants.push_back({[=, out = dw]() mutable { at::mm_out(out, dy.t(), x); }});
  }
  race_products(contestants, o, i, n);
}

void all_weight_gradients() {
  std::printf("\n| dW, o x i | n | ours, slot written | ours, slot added to | mm | mm, then add |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const auto& [o, i] : kShapes) {
    for (const int64_t n : kRowCounts) weight_gradients(o, i, n);
  }
}

void all_library_products(const std::vector<at::ScalarType>& types) {
  std::string rule = "|---|---|";
  std::printf("\n| W, o x i | n |");
  for (const at::ScalarType type : types) {
    const char* name = type == at::kFloat ? "fp32" : "bf16";
    std::printf(" %s y | %s dX | %s dW |", name, name, name);
    rule += "---|---|---|";
  }
  std::printf("\n%s\n", rule.c_str());
  for (const auto& [o, i] : kShapes) {
    for (const int64_t n : {256, 1024}) library_products(types, o, i, n);
  }
}

}  // namespace

// Without instructions for it, bfloat16 has no kernel of ours and no products of the library worth timing.
int main(int argc, char** argv) {
  at::set_num_threads(argc > 1 ? std::atoi(argv[1]) : at::get_num_threads());
  std::printf("%d threads, GFLOP/s\n\n", at::get_num_threads());
  print_peaks();
  if (braid::kernels::has_product_bf16()) {
    all_weight_gradients();
    all_library_products({at::kBFloat16, at::kFloat});
  } else {
    all_library_products({at::kFloat});
  }
}
