// Versions far apart: a graph built on one must not see the next.
#include "braid/param/weight_versions.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "braid/base/errors.h"

namespace braid::param::weight_versions_test {
namespace {

std::unique_ptr<ParamStore> store_of(at::ScalarType dtype) {
  layout::ParamSpec weight{"weight", mesh::replicated({2, 3}), {model::Init::Kind::Ones}, model::WeightDecay::Yes};
  layout::ParamSpec bias{"bias", mesh::replicated({3}), {model::Init::Kind::Zeros}, model::WeightDecay::No};
  return std::make_unique<ParamStore>(std::vector<layout::BlockSpec>{{"block", {weight, bias}}}, Reduction::Fast,
                                      at::TensorOptions(dtype), 1);
}

// In place, as an optimizer writes.
void overwrite(ParamStore& store, double value) {
  store.flat_master().detach().fill_(value);
  store.round_masters();
}

TEST(WeightVersions, BackwardSeesTheWeightsOfItsForward) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const auto store = store_of(dtype);
    WeightVersions versions(*store);
    const at::Tensor x = at::full({1, 2}, 1.0, dtype).requires_grad_(true);
    const at::Tensor y = x.matmul((*store)["weight"].data);
    versions.push();
    overwrite(*store, 100);
    EXPECT_EQ((*store)["weight"].data.sum().item<double>(), 600);
    torch::autograd::backward({y}, {at::ones({1, 3}, dtype)});
    EXPECT_TRUE(x.grad().equal(at::full({1, 2}, 3.0, dtype))) << x.grad();  // 300 with the new weights
  }
}

TEST(WeightVersions, OlderVersionsComeBackAndTheNewestIsUpdated) {
  const auto store = store_of(at::kFloat);
  WeightVersions versions(*store);
  versions.push();
  overwrite(*store, 2);
  versions.push();
  overwrite(*store, 3);
  EXPECT_EQ(versions.num_live(), 3);
  for (const int version : {0, 2, 1}) {
    versions.use(version);
    EXPECT_EQ((*store)["weight"].data.sum().item<double>(), 6 * (version + 1));
    EXPECT_TRUE((*store)["weight"].data.requires_grad());
    EXPECT_EQ((*store)["weight"].master.sum().item<double>(), 6 * (version + 1));
  }
  versions.drop_before(1);
  EXPECT_EQ(versions.num_live(), 2);
  EXPECT_THROW(versions.use(0), InternalError);
}

TEST(WeightVersions, MemoryOfDroppedVersionsServesLaterOnes) {
  const auto store = store_of(at::kFloat);
  WeightVersions versions(*store);
  const void* first = store->flat_data().data_ptr();
  versions.push();
  versions.drop_before(1);
  versions.push();
  EXPECT_EQ(store->flat_data().data_ptr(), first);
  versions.restart();
  EXPECT_EQ(versions.newest(), 0);
  EXPECT_EQ(store->flat_data().data_ptr(), first);
}

}  // namespace
}  // namespace braid::param::weight_versions_test
