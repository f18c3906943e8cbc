// CoreMemory::KeyHeads: a key head has the same outputs and gradients, bit for bit, beside others as alone.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "braid/base/text.h"
#include "braid/nn/attention.h"

namespace braid::nn::head_bits_test {
namespace {

constexpr int64_t kKeyHeads = 4;

struct Heads {
  at::Tensor y_bthd, dqkv_bthd;
};

at::Tensor drawn(at::IntArrayRef sizes, at::ScalarType type) {
  at::Generator draws = at::make_generator<at::CPUGeneratorImpl>(7);
  return at::randn(sizes, draws, at::kDouble).to(type);
}

// Returns the attention of heads [queries | keys | values], and its gradient for dy.
Heads attention_of(const at::Tensor& qkv_bthd, const at::Tensor& dy_bthd, CoreCall call) {
  const int64_t b = qkv_bthd.size(0), t = qkv_bthd.size(1);
  const at::Tensor qkv_btf = qkv_bthd.contiguous().view({b, t, -1}).requires_grad_();
  const at::Tensor y = attention_core(qkv_btf, call).value;
  const at::Tensor dqkv = torch::autograd::grad({y}, {qkv_btf}, {dy_bthd.contiguous().view({b, t, -1})}).at(0);
  return {y.detach().view(dy_bthd.sizes()), dqkv.view(qkv_bthd.sizes())};
}

// Expects the heads of each key head to be those of a call with this key head alone.
void expect_same_alone(int64_t width, int64_t tokens, CoreCall call, at::ScalarType type) {
  const int64_t each = call.heads / kKeyHeads;
  const at::Tensor qkv = drawn({2, tokens, call.heads + 2 * kKeyHeads, width}, type);
  const at::Tensor dy = drawn({2, tokens, call.heads, width}, type);
  const Heads all = attention_of(qkv, dy, call);
  const auto parts_of = [&](const at::Tensor& x, int64_t key) {
    const int64_t k = call.heads + key, v = k + kKeyHeads;
    return std::vector<at::Tensor>{x.narrow(2, key * each, each), x.narrow(2, k, 1), x.narrow(2, v, 1)};
  };
  CoreCall one = call;
  one.heads = each, one.kv_heads = 1;
  for (int64_t key = 0; key < kKeyHeads; ++key) {
    const Heads alone = attention_of(at::cat(parts_of(qkv, key), 2), dy.narrow(2, key * each, each), one);
    EXPECT_TRUE(all.y_bthd.narrow(2, key * each, each).equal(alone.y_bthd)) << "outputs of key head " << key;
    EXPECT_TRUE(at::cat(parts_of(all.dqkv_bthd, key), 2).equal(alone.dqkv_bthd)) << "gradients of key head " << key;
  }
}

// The numbers of tokens and features are odd, so that heads one after another would be aligned differently.
TEST(HeadBits, DoNotDependOnOtherHeads) {
  const int threads = at::get_num_threads();
  for (const int num_threads : {1, 2, 3}) {
    at::set_num_threads(num_threads);
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
      for (const double cap : {0.0, 20.0}) {
        for (const Keep keep : {Keep::Everything, Keep::Selected}) {
          for (const auto& [width, tokens] : {std::pair(5, 23), {6, 33}, {10, 23}, {16, 101}}) {
            SCOPED_TRACE(cat(num_threads, " threads, ", c10::toString(type), ", cap ", cap, ", ", tokens, " tokens of ",
                             width, " features"));
            const CoreCall call{
                .heads = kKeyHeads, .kv_heads = kKeyHeads, .keep = keep, .cap = cap, .memory = CoreMemory::KeyHeads};
            expect_same_alone(width, tokens, call, type);
          }
        }
      }
    }
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace braid::nn::head_bits_test
