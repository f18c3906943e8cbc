// Dropout's mask and product on the host.
#include "braid/nn/kernels/masked.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/native_dropout_backward.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "braid/nn/kernels/team_activation.h"

namespace braid::nn::masked_test {
namespace {

TEST(Masked, TheMaskIsThatOfDevicesWhateverTheThreads) {
  const at::Tensor like = at::randn({333, 77});
  const uint64_t key = 0x123456789abcdef0;
  const at::Tensor drawn = at::empty(like.sizes(), at::kBool);
  const kernels::KeepMask call{&key, 5, uint64_t{3} << 30, drawn.mutable_data_ptr<bool>(), drawn.numel()};
  for (int64_t i = 0; 4 * i < drawn.numel(); ++i) kernels::draw_keep_mask(call, i);
  const int threads = at::get_num_threads();
  for (const int num : {1, 3}) {
    at::set_num_threads(num);
    EXPECT_TRUE(kernels::keep_mask(like, {key, 5, 0.75}).equal(drawn)) << num;
  }
  at::set_num_threads(threads);
  EXPECT_TRUE(kernels::keep_mask(like, {key, 5, 1}).all().item<bool>());
  EXPECT_FALSE(kernels::keep_mask(like, {key, 6, 0.75}).equal(drawn));
  EXPECT_FALSE(kernels::keep_mask(like, {key + 1, 5, 0.75}).equal(drawn));
}

// Parts begin and end within a draw of four elements.
TEST(Masked, PartsOfTheTokensHaveTheMaskOfAllTokens) {
  const at::Tensor like = at::empty({3, 12, 5});
  const at::Tensor all = kernels::keep_mask(like, {7, 3, 0.5});
  for (const int64_t parts : {2, 3, 4}) {
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t tokens = 12 / parts;
      const at::Tensor own = like.narrow(1, part * tokens, tokens);
      const at::Tensor mask = kernels::keep_mask(own, {7, 3, 0.5, {part, parts}});
      EXPECT_TRUE(mask.equal(all.narrow(1, part * tokens, tokens))) << part << " of " << parts;
    }
  }
}

TEST(Masked, TheProductHasTheBitsOfLibTorchsWhateverTheThreads) {
  const int threads = at::get_num_threads();
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    for (const int64_t rows : {0, 333}) {
      const at::Tensor x = at::randn({rows, 77}).to(type), mask = kernels::keep_mask(x, {7, 0, 0.9});
      for (const int num : {1, 3}) {
        at::set_num_threads(num);
        EXPECT_TRUE(kernels::masked(x, mask, 1 / 0.9).equal(at::native_dropout_backward(x, mask, 1 / 0.9))) << type;
      }
    }
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace braid::nn::masked_test
