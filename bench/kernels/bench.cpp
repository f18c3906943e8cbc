// Times each fused kernel against its bound, the bytes that must move at the memory speed of this machine, and against
// the composed LibTorch operations. It does not judge; README.md has the numbers.
//
// The memory speed is that of a triad, a = b + s c in float32, over as many bytes in all as the kernel moves and with
// as many threads: where a kernel's tensors fit a cache, so do the triad's. Kernel, peer and triad take turns.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <cstdio>

#include "bench/kernels/activation_cases.h"
#include "bench/kernels/block_cases.h"
#include "bench/kernels/loss_cases.h"
#include "bench/kernels/norm_cases.h"
#include "braid/base/clock.h"
#include "braid/nn/kernels/product_bf16.h"
#include "braid/param/memory_account.h"

namespace braid::bench {
namespace {

constexpr int kThreadCounts[] = {1, 2};
constexpr int64_t kRowCounts[] = {256, 4096};
constexpr int kRounds = 41;
constexpr double kSeconds = 0.6;  // of timing per case at most, but never less than kLeastRounds
constexpr int kLeastRounds = 7;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double seconds_of(const std::function<void()>& work) {
  const double begin = now_seconds();
  work();
  return now_seconds() - begin;
}

// Three tensors of `bytes` in all.
class Triad {
 public:
  explicit Triad(double bytes)
      : count_(static_cast<int64_t>(bytes / 12)),
        a_(at::ones({count_})),
        b_(at::ones({count_})),
        c_(at::ones({count_})) {}
  double bytes() const { return 12.0 * static_cast<double>(count_); }
  void run() const {
    float* a = a_.mutable_data_ptr<float>();
    const float *b = b_.const_data_ptr<float>(), *c = c_.const_data_ptr<float>();
    at::parallel_for(0, (count_ + 63) / 64, 64, [&](int64_t begin, int64_t end) {
      add(a + begin * 64, b + begin * 64, c + begin * 64, std::min(count_, end * 64) - begin * 64);
    });
  }

 private:
  static void add(float* __restrict a, const float* __restrict b, const float* __restrict c, int64_t count) {
    constexpr int kLanes = 32;
    for (; count >= kLanes; count -= kLanes, a += kLanes, b += kLanes, c += kLanes) {
      for (int i = 0; i < kLanes; ++i) a[i] = b[i] + 0.5F * c[i];
    }
    for (int64_t i = 0; i < count; ++i) a[i] = b[i] + 0.5F * c[i];
  }

  int64_t count_;
  at::Tensor a_, b_, c_;
};

// Medians of interleaved rounds.
struct Timing {
  double seconds = 0, composed_seconds = 0, triad_bytes_per_second = 0, gain = 0;
};
Timing time_case(const KernelCase& c) {
  const Triad triad(std::max(c.bytes, 1e6));
  std::vector<double> ours, composed, triads, gains;
  const double begin = now_seconds();
  for (int round = 0; round <= kRounds; ++round) {
    if (c.prepare) c.prepare();
    const double mine = seconds_of(c.ours);
    if (c.prepare) c.prepare();
    const double theirs = seconds_of(c.composed);
    const double bound = seconds_of([&] { triad.run(); });
    if (round == 0) continue;  // first touch
    ours.push_back(mine), composed.push_back(theirs), gains.push_back(theirs / mine);
    triads.push_back(triad.bytes() / bound);
    if (round >= kLeastRounds && now_seconds() - begin > kSeconds) break;
  }
  return {median(ours), median(composed), median(triads), median(gains)};
}

void print(const KernelCase& c) {
  std::printf("| %s | %s | %.1f |", c.name.c_str(), c.size.c_str(), c.bytes / 1e6);
  for (const int threads : kThreadCounts) {
    at::set_num_threads(threads);
    const Timing t = time_case(c);
    const double of_triad = c.bytes / t.seconds / t.triad_bytes_per_second;
    std::printf(" %.1f | %.0f %% | %.1f x |", t.seconds * 1e6, 100 * of_triad, t.gain);
  }
  std::printf("\n");
  std::fflush(stdout);
}

void print_block(const char* dtype, const KernelCase& c) {
  std::printf("| %s | %s |", dtype, c.size.c_str());
  for (const int threads : kThreadCounts) {
    at::set_num_threads(threads);
    const Timing t = time_case(c);
    std::printf(" %.2f | %.2f | %.2f x |", t.seconds * 1e3, t.composed_seconds * 1e3, t.gain);
  }
  std::printf("\n");
  std::fflush(stdout);
}

const char* title(at::ScalarType dtype) { return dtype == at::kFloat ? "float32" : "bfloat16"; }

std::vector<KernelCase> cases_of(at::ScalarType dtype, int64_t rows) {
  std::vector<KernelCase> cases;
  add_norm_cases(cases, kernels::NormKind::Layer, {rows, 768}, dtype);
  add_gelu_cases(cases, {rows, 3072}, dtype);
  add_norm_cases(cases, kernels::NormKind::Rms, {rows, 2048}, dtype);
  cases.pop_back();  // the plain sum, a second time
  add_swiglu_cases(cases, {rows, 8192}, dtype);
  add_rotary_case(cases, {rows / 64, 64, 32, 8, 64}, dtype);
  add_weight_gradient_cases(cases, {rows, 768}, dtype);
  if (rows <= 256) add_cross_entropy_cases(cases, {rows, 50304}, dtype);
  return cases;
}

void run_kernels(at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  std::printf("\n### %s\n\n", title(dtype));
  std::printf("| kernel | size | MB moved | one thread, us | of the triad | against LibTorch ");
  std::printf("| two threads, us | of the triad | against LibTorch |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const int64_t rows : kRowCounts) {
    for (const KernelCase& c : cases_of(dtype, rows)) print(c);
  }
}

void run_blocks(at::ScalarType dtype, Communicator& alone) {
  std::vector<KernelCase> cases;
  for (const BlockSize size : {BlockSize{4, 64}, BlockSize{4, 256}}) add_block_case(cases, size, alone, dtype);
  for (const KernelCase& c : cases) print_block(title(dtype), c);
}

void run(Communicator& alone) {
  std::printf("| dtype | b x t | one thread: fused, ms | composed, ms | gain ");
  std::printf("| two threads: fused, ms | composed, ms | gain |\n|---|---|---|---|---|---|---|---|\n");
  run_blocks(at::kFloat, alone);
  // Without instructions for bfloat16 a block would time the library's slow products and little else.
  if (kernels::has_product_bf16()) run_blocks(at::kBFloat16, alone);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) run_kernels(dtype);
}

}  // namespace
}  // namespace braid::bench

int main() {
  braid::param::install_memory_accounting();  // a trainer's allocator: freed blocks are kept, for the peer as for us
  braid::run_ranks(1, [](braid::Communicator& alone) { braid::bench::run(alone); });
  return 0;
}
