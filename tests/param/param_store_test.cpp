// The flat buffers: layout, views and initial values that no split changes.
#include "braid/param/param_store.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"

namespace braid::param::param_store_test {
namespace {

layout::ParamSpec normal(std::string name, mesh::Placement placement) {
  return {std::move(name), std::move(placement), {model::Init::Kind::Normal, 0.5}};
}

// The element of the global tensor at each local place that holds one; -1 on padding.
std::vector<int64_t> global_index_of_local(const mesh::Placement& placement) {
  std::vector<int64_t> out(mesh::num_elements(placement.local_shape), -1);
  for (const mesh::Piece& piece : placement.pieces) {
    for (int64_t n = 0; n < piece.global.num_elements(); ++n) {
      int64_t rest = n, global = 0, local = 0, global_stride = 1, local_stride = 1;
      for (int d = static_cast<int>(placement.global_shape.size()) - 1; d >= 0; --d) {
        const int64_t extent = piece.global.end[d] - piece.global.begin[d], i = rest % extent;
        rest /= extent;
        global += (piece.global.begin[d] + i) * global_stride;
        local += (piece.local_begin[d] + i) * local_stride;
        global_stride *= placement.global_shape[d];
        local_stride *= placement.local_shape[d];
      }
      out[local] = global;
    }
  }
  return out;
}

std::vector<mesh::Placement> all_parts(const mesh::Index& shape) {
  std::vector<mesh::Placement> out{mesh::replicated(shape)};
  for (const int parts : {2, 3, 4}) {
    for (int part = 0; part < parts; ++part) {
      for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim) {
        const int64_t padded = (shape[dim] + 2 * parts - 1) / parts * parts;
        out.push_back(mesh::split_dim(shape, dim, padded, {part, parts, mesh::Axis::Tensor}));
        if (shape[dim] % (3 * parts) == 0) {
          out.push_back(mesh::split_segments(shape, dim, 3, {part, parts, mesh::Axis::Tensor}));
        }
      }
    }
  }
  return out;
}

template <class T>
void expect_element_values(const mesh::Placement& placement, at::ScalarType dtype) {
  ParamStore store({{"block", {normal("w", placement)}}}, Reduction::Fast, dtype, 7);
  const uint64_t key = stream_key(7, "w");
  const T* data = store["w"].data.const_data_ptr<T>();
  const auto global = global_index_of_local(placement);
  int64_t wrong = 0;
  for (size_t i = 0; i < global.size(); ++i) {
    const T expected = global[i] < 0 ? 0 : static_cast<T>(0.5 * normal4(key, global[i] / 4)[global[i] % 4]);
    wrong += data[i] != expected;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(ParamStore, InitialValuesDependOnGlobalIndexOnly) {
  for (const mesh::Index& shape :
       {mesh::Index{36, 7}, mesh::Index{7, 36}, mesh::Index{13}, mesh::Index{6, 5, 12}, mesh::Index{}}) {
    for (const mesh::Placement& placement : all_parts(shape)) {
      expect_element_values<float>(placement, at::kFloat);
      expect_element_values<double>(placement, at::kDouble);
    }
  }
}

TEST(ParamStore, InitialValuesDoNotDependOnThreads) {
  const std::vector<layout::BlockSpec> blocks{{"block", {normal("w", mesh::replicated({300, 333}))}}};
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  ParamStore one(blocks, Reduction::Fast, at::kFloat, 3);
  at::set_num_threads(3);
  ParamStore three(blocks, Reduction::Fast, at::kFloat, 3);
  at::set_num_threads(before);
  EXPECT_TRUE(at::equal(one.flat_data(), three.flat_data()));
}

TEST(ParamStore, NormalValuesHaveTheStandardDeviationAskedFor) {
  ParamStore store({{"block", {normal("w", mesh::replicated({400, 250}))}}}, Reduction::Fast, at::kDouble, 1);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 100000; ++i) {
    const double x = store["w"].data.const_data_ptr<double>()[i];
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / 1e5, 0, 0.5 * 5 / std::sqrt(1e5));
  EXPECT_NEAR(squares / 1e5, 0.25, 0.25 * 5 * std::sqrt(2 / 1e5));
}

TEST(ParamStore, SeedAndNameChangeValues) {
  const std::vector<layout::BlockSpec> blocks{
      {"b", {normal("a", mesh::replicated({64})), normal("b", mesh::replicated({64}))}}};
  ParamStore one(blocks, Reduction::Fast, at::kFloat, 1), two(blocks, Reduction::Fast, at::kFloat, 2);
  EXPECT_FALSE(at::equal(one["a"].data, one["b"].data));
  EXPECT_FALSE(at::equal(one["a"].data, two["a"].data));
}

TEST(ParamStore, OnesAndZerosFillPiecesAndLeavePaddingZero) {
  const mesh::Placement padded =
      mesh::split_dim({5}, 0, 8, {1, 2, mesh::Axis::Tensor});  // holds element 4, then three of padding
  ParamStore store(
      {{"b", {{"ones", padded, {model::Init::Kind::Ones}}, {"zeros", padded, {model::Init::Kind::Zeros}}}}},
      Reduction::Fast, at::kFloat, 1);
  const float* ones = store["ones"].data.const_data_ptr<float>();
  EXPECT_EQ(std::vector<float>(ones, ones + 4), (std::vector<float>{1, 0, 0, 0}));
  const float* zeros = store["zeros"].data.const_data_ptr<float>();
  EXPECT_EQ(std::vector<float>(zeros, zeros + 4), (std::vector<float>(4)));
}

TEST(ParamStore, SlicesAreAlignedViewsOfTheFlatBuffers) {
  ParamStore store({{"b", {normal("a", mesh::replicated({3, 5})), normal("b", mesh::replicated({1024}))}},
                    {"c", {normal("c", mesh::replicated({1025})), normal("d", mesh::replicated({2}))}}},
                   Reduction::Fast, at::kFloat, 1);
  std::vector<int64_t> offsets;
  for (const Parameter& param : store.params()) {
    offsets.push_back(param.offset);
    EXPECT_EQ(param.data.data_ptr(), store.flat_data().narrow(0, param.offset, 1).data_ptr()) << param.name;
    EXPECT_EQ(param.main_grad.data_ptr(), store.flat_grads().narrow(0, param.offset, 1).data_ptr()) << param.name;
    EXPECT_TRUE(param.data.requires_grad() && param.data.is_leaf()) << param.name;
    EXPECT_FALSE(param.main_grad.requires_grad()) << param.name;
    EXPECT_EQ(param.data.sizes(), at::IntArrayRef(param.placement.local_shape));
    EXPECT_EQ(param.main_grad.sizes(), param.data.sizes());
    EXPECT_EQ(&store[param.name], &store.params()[param.index]);
  }
  EXPECT_EQ(offsets, (std::vector<int64_t>{0, 1024, 2048, 4096}));
  EXPECT_EQ(store.num_flat(), 5120);
  EXPECT_EQ(store.flat_grads().numel(), 5120);
}

std::vector<layout::BlockSpec> tied_model() {
  layout::ParamSpec first = normal("wte", mesh::replicated({10, 3})), second = first;
  first.uses = second.uses = 2;
  second.use = 1;
  return {{"embedding", {first, normal("wpe", mesh::replicated({4, 3}))}}, {"head", {second}}};
}

TEST(ParamStore, TiedUsesShareTheSliceInFastMode) {
  ParamStore store(tied_model(), Reduction::Fast, at::kFloat, 1);
  const Parameter& wte = store["wte"];
  EXPECT_EQ(store.params().size(), 2u);
  EXPECT_EQ(wte.local_uses, (std::vector<int>{0, 1}));
  ASSERT_EQ(wte.use_grads.size(), 2u);
  for (const UseGrad& grad : wte.use_grads) EXPECT_EQ(grad.slice.data_ptr(), wte.main_grad.data_ptr());
  EXPECT_EQ(store.flat_grads().numel(), store.num_flat());
}

TEST(ParamStore, TiedUsesHaveSlicesOfTheirOwnInReproducibleMode) {
  ParamStore store(tied_model(), Reduction::Reproducible, at::kFloat, 1);
  const Parameter& wte = store["wte"];
  ASSERT_EQ(wte.use_grads.size(), 2u);
  EXPECT_EQ(wte.use_grads[0].slice.data_ptr(), wte.main_grad.data_ptr());
  EXPECT_EQ(wte.use_grads[1].use, 1);
  EXPECT_EQ(wte.use_grads[1].slice.data_ptr(), store.flat_grads().narrow(0, store.num_flat(), 1).data_ptr());
  EXPECT_EQ(store.flat_grads().numel(), store.num_flat() + 1024);
}

TEST(ParamStore, RankWithTheSecondUseAloneHoldsItInTheFirstPart) {
  ParamStore store({tied_model()[1]}, Reduction::Reproducible, at::kFloat, 1);
  EXPECT_EQ(store["wte"].local_uses, (std::vector<int>{1}));
  EXPECT_EQ(store["wte"].use_grads[0].slice.data_ptr(), store.flat_grads().data_ptr());
  EXPECT_EQ(store.flat_grads().numel(), store.num_flat());
}

TEST(ParamStore, TiedPlacesMustAgree) {
  auto blocks = tied_model();
  blocks[1].params[0].init.std = 0.25;
  EXPECT_THROW(ParamStore(blocks, Reduction::Fast, at::kFloat, 1), InternalError);
  blocks = tied_model();
  blocks[1].params[0].use = 0;
  EXPECT_THROW(ParamStore(blocks, Reduction::Fast, at::kFloat, 1), InternalError);
}

TEST(ParamStore, UnknownNameAndTypeFail) {
  ParamStore store(tied_model(), Reduction::Fast, at::kFloat, 1);
  EXPECT_THROW(store["wpe.bias"], InternalError);
  EXPECT_THROW(ParamStore(tied_model(), Reduction::Fast, at::kLong, 1), InternalError);
}

TEST(ParamStore, ARankMayHoldNothing) {
  ParamStore store({{"empty", {}}}, Reduction::Reproducible, at::kFloat, 1);
  EXPECT_EQ(store.num_flat(), 0);
  EXPECT_EQ(store.flat_grads().numel(), 0);
}

}  // namespace
}  // namespace braid::param::param_store_test
