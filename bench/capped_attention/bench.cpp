// Times attention with capped scores beside LibTorch's attention without a cap, both through attention_core(), forward
// and backward apart. The two take turns. README.md has the numbers.
#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/median.h"
#include "braid/base/text.h"
#include "braid/nn/attention.h"
#include "braid/param/memory_account.h"

namespace braid::bench {
namespace {

constexpr int kThreadCounts[] = {1, 2};
constexpr int kLeastRounds = 7, kMostRounds = 41;
constexpr double kSeconds = 4;  // of timing per case, but never less than kLeastRounds

struct Size {
  int64_t b, t, heads, kv_heads, width, window;
};
constexpr Size kSizes[] = {{1, 2048, 8, 4, 256, 0},  {1, 2048, 8, 4, 256, 1024}, {2, 512, 8, 4, 256, 0},
                           {2, 1024, 16, 8, 128, 0}, {4, 256, 12, 12, 64, 0},    {1, 1024, 12, 12, 64, 0},
                           {8, 128, 4, 2, 32, 0}};

struct Seconds {
  double forward, backward;
};

Seconds run(const at::Tensor& qkv_btf, const at::Tensor& dy_btf, const nn::CoreCall& call) {
  const double begin = now_seconds();
  const at::Tensor y = nn::attention_core(qkv_btf, call).value;
  const double middle = now_seconds();
  torch::autograd::grad({y}, {qkv_btf}, {dy_btf});
  return {middle - begin, now_seconds() - middle};
}

void time_size(const Size& s, at::ScalarType type) {
  const at::Tensor qkv = at::randn({s.b, s.t, (s.heads + 2 * s.kv_heads) * s.width}).to(type).requires_grad_();
  const at::Tensor dy = at::randn({s.b, s.t, s.heads * s.width}).to(type);
  const nn::CoreCall plain{.heads = s.heads, .kv_heads = s.kv_heads, .window = s.window};
  nn::CoreCall capped = plain;
  capped.cap = 50;
  std::printf("| %s | %ld x %ld | %ld, %ld of %ld | %s |",
              type == at::kFloat    ? "float32"
              : type == at::kDouble ? "float64"
                                    : "bfloat16",
              s.b, s.t, s.heads, s.kv_heads, s.width, s.window > 0 ? cat(s.window).c_str() : "none");
  for (const int threads : kThreadCounts) {
    at::set_num_threads(threads);
    std::vector<double> forward, backward, forward_ratio, backward_ratio, ratio;
    const double begin = now_seconds();
    for (int round = 0; round <= kMostRounds; ++round) {
      const Seconds ours = run(qkv, dy, capped), theirs = run(qkv, dy, plain);
      if (round == 0) continue;  // first touch
      forward.push_back(ours.forward), backward.push_back(ours.backward);
      forward_ratio.push_back(ours.forward / theirs.forward);
      backward_ratio.push_back(ours.backward / theirs.backward);
      ratio.push_back((ours.forward + ours.backward) / (theirs.forward + theirs.backward));
      if (round >= kLeastRounds && now_seconds() - begin > kSeconds) break;
    }
    std::printf(" %.2f + %.2f | %.2f | %.2f | %.2f |", median(forward) * 1e3, median(backward) * 1e3,
                median(forward_ratio), median(backward_ratio), median(ratio));
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace braid::bench

int main() {
  using namespace braid::bench;
  braid::param::install_memory_accounting();  // a trainer's allocator: freed blocks are kept, for the peer as for us
  std::printf("| type | b x t | heads, key heads of features | window ");
  for (const char* threads : {"one thread", "two threads"})
    std::printf("| %s, ms | forward | backward | both ", threads);
  std::printf("|\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    for (const Size& size : kSizes) time_size(size, type);
  }
  return 0;
}
