// Messages of compressors, by hand; that the rest becomes the residual; that NaN passes through.
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "braid/base/seeds.h"
#include "braid/sync/reducers/block_codecs.h"
#include "braid/sync/reducers/top_k_codec.h"

namespace braid::sync::codecs_test {
namespace {

struct Told {
  at::Tensor heard, left;
};

Told tell(const Codec& codec, const at::Tensor& values) {
  const at::Tensor left = values.clone(), heard = at::zeros_like(values);
  const at::Tensor message = at::empty({codec.num_bytes(values.numel())}, at::kByte);
  codec.encode(left, static_cast<std::byte*>(message.mutable_data_ptr()));
  codec.add(static_cast<const std::byte*>(message.const_data_ptr()), heard);
  return {heard, left};
}

void expect_elements(const at::Tensor& got, const std::vector<double>& want) {
  ASSERT_EQ(got.numel(), static_cast<int64_t>(want.size()));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[static_cast<int64_t>(i)].item<double>(), want[i]) << i;
}

at::Tensor doubles(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

at::Tensor noise(int64_t count, at::ScalarType type) {
  const at::Tensor values = at::empty({count}, at::kDouble);
  for (int64_t i = 0; i < count; ++i) {
    values.mutable_data_ptr<double>()[i] = (2 * uniform(3, i) - 1) * std::exp2(static_cast<double>(i % 12));
  }
  return values.to(type);
}

TEST(TopKCodec, TheLargestTravelAndTheRestStays) {
  const TopKCodec codec(0.3);  // of 8: 2.4, so 3
  EXPECT_EQ(codec.num_bytes(8), 24);
  const Told told = tell(codec, doubles({1, -5, 0.5, 4, -4, 4, 0, 2}));
  expect_elements(told.heard, {0, -5, 0, 4, -4, 0, 0, 0});  // of the three fours, the first two
  expect_elements(told.left, {1, 0, 0.5, 0, 0, 4, 0, 2});
}

TEST(TopKCodec, AtLeastOneTravelsAndAtMostAll) {
  EXPECT_EQ(TopKCodec(1e-9).num_kept(5), 1);
  EXPECT_EQ(TopKCodec(1).num_kept(5), 5);
  EXPECT_EQ(TopKCodec(0.5).num_kept(0), 0);
  expect_elements(tell(TopKCodec(1), doubles({1, 1, 1, 0})).heard, {1, 1, 1, 0});
}

// A double's value is rounded to float32 on the wire; what that takes off is not lost.
TEST(TopKCodec, RoundingOnTheWireStaysInTheRest) {
  const double third = 1.0 / 3, sent = static_cast<float>(third);
  const Told told = tell(TopKCodec(0.5), doubles({third, 0.1}));
  expect_elements(told.heard, {sent, 0});
  expect_elements(told.left, {third - sent, 0.1});
}

TEST(OneBitCodec, EachSideIsHeardAsItsMean) {
  const OneBitCodec codec;
  EXPECT_EQ(codec.num_bytes(5), 8 + 1);
  const Told told = tell(codec, doubles({1, -3, 3, 0, -1}));
  const double high = static_cast<float>(4.0 / 3);
  expect_elements(told.heard, {high, -2, high, high, -2});
  expect_elements(told.left, {1 - high, -1, 3 - high, -high, 1});
}

// A mean that were what the other side leaves of all would be rounded away.
TEST(OneBitCodec, ALargeValueLeavesTheOtherSideItsMean) {
  expect_elements(tell(OneBitCodec(), doubles({1e20, -0.5, -1, -1.5})).heard, {static_cast<float>(1e20), -1, -1, -1});
  expect_elements(tell(OneBitCodec(), doubles({0.5, -1e20, 1, 1.5})).heard, {1, static_cast<float>(-1e20), 1, 1});
}

TEST(OneBitCodec, BlocksHaveMeansOfTheirOwn) {
  EXPECT_EQ(OneBitCodec().num_bytes(2 * kCodecBlock + 9), 2 * (8 + 128) + 8 + 2);
  at::Tensor values = at::zeros({kCodecBlock + 1}, at::kFloat);
  values.fill_(2);
  values[kCodecBlock] = -7;
  const Told told = tell(OneBitCodec(), values);
  EXPECT_TRUE(told.heard.equal(values));
}

TEST(EightBitCodec, MultiplesOfAStepToTheNearest) {
  const EightBitCodec codec;
  EXPECT_EQ(codec.num_bytes(6), 4 + 6);
  const Told told = tell(codec, doubles({254, -254, 3, 1, 5.9, 0}));  // the step is 2; 1.5 and 0.5 are ties
  expect_elements(told.heard, {254, -254, 4, 0, 6, 0});
  expect_elements(told.left, {0, 0, -1, 1, 5.9 - 6, 0});
}

TEST(EightBitCodec, BlocksHaveStepsOfTheirOwn) {
  EXPECT_EQ(EightBitCodec().num_bytes(2 * kCodecBlock + 9), 2 * (4 + 1024) + 4 + 9);
  at::Tensor values = at::zeros({kCodecBlock + 1}, at::kFloat);
  values[0] = 1e6;
  values[kCodecBlock] = 0.5;
  EXPECT_EQ(tell(EightBitCodec(), values).heard[kCodecBlock].item<double>(), 0.5);
}

struct Kind {
  const char* name;
  std::shared_ptr<Codec> codec;
  double most_left;  // of the squared norm
};

const std::vector<Kind> kKinds = {{"top-k", std::make_shared<TopKCodec>(0.05), 0.95},
                                  {"one-bit", std::make_shared<OneBitCodec>(), 1 - 1.0 / kCodecBlock},
                                  {"eight-bit", std::make_shared<EightBitCodec>(), 1.0 / 100}};

// The bound of top-k is Stich et al. (2018), definition 2.1; that of one bit follows from |sum| >= 2-norm.
TEST(Codecs, WhatIsLeftIsShorterByTheKnownFactor) {
  for (const Kind& kind : kKinds) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      const at::Tensor values = noise(5000, type);
      const Told told = tell(*kind.codec, values);
      const double before = values.square().sum().item<double>(), after = told.left.square().sum().item<double>();
      EXPECT_LT(after, kind.most_left * before) << kind.name;
      EXPECT_GT(after, 0) << kind.name;
    }
  }
}

TEST(Codecs, HeardAndLeftTogetherAreWhatWasThere) {
  for (const Kind& kind : kKinds) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      const at::Tensor values = noise(5000, type);
      const Told told = tell(*kind.codec, values);
      const double largest = told.heard.add(told.left).sub(values).abs().max().item<double>();
      EXPECT_LT(largest, type == at::kFloat ? 1e-3 : 1e-12) << kind.name;  // values reach 2048
    }
  }
}

TEST(Codecs, ZerosSayNothing) {
  for (const Kind& kind : kKinds) {
    const Told told = tell(*kind.codec, at::zeros({3000}, at::kFloat));
    EXPECT_EQ(told.heard.abs().max().item<double>(), 0) << kind.name;
    EXPECT_EQ(told.left.abs().max().item<double>(), 0) << kind.name;
  }
}

TEST(Codecs, ARunThatIsNotFiniteIsHeardAsOne) {
  for (const Kind& kind : kKinds) {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
      at::Tensor values = noise(3000, at::kFloat);
      values[1700] = bad;
      EXPECT_FALSE(std::isfinite(tell(*kind.codec, values).heard.sum().item<double>())) << kind.name << " " << bad;
    }
  }
}

}  // namespace
}  // namespace braid::sync::codecs_test
