// The bodies of the device kernels, run by threads of the host, against plain loops in float64 on the same rounded
// inputs. What a device adds is the exchange between its threads and the launch, which no test here runs.
#include <gtest/gtest.h>

#include "braid/nn/kernels/team_activation.h"
#include "braid/nn/kernels/team_norm.h"
#include "tests/nn/device_memory.h"

namespace braid::kernels::device_bodies_test {
namespace {

template <class T>
class DeviceBody : public testing::Test {};
using Types = testing::Types<float, double, c10::BFloat16, c10::Half>;
TYPED_TEST_SUITE(DeviceBody, Types);

struct NormCase {
  NormKind kind;
  bool branch, bias, dsum;
};
constexpr NormCase kNormCases[] = {{NormKind::Layer, true, true, true},
                                   {NormKind::Layer, false, false, false},
                                   {NormKind::Rms, true, false, true},
                                   {NormKind::Rms, false, false, false}};

// Forward and backward of one case by a team; every output against float64.
template <class T, int N>
void expect_norm(const NormCase& c, int team_size) {
  using M = MathOf<T>;
  const auto residual = some<T>(kRows * kWidth, 1), branch = some<T>(kRows * kWidth, 2), bias = some<T>(kWidth, 3),
             weight = some<T>(kWidth, 4), shift = some<T>(kWidth, 5), dy = some<T>(kRows * kWidth, 6),
             dsum = some<T>(kRows * kWidth, 7);
  Memory<T> r(residual), b(branch), bb(bias), w(weight), s(shift), d(dy), ds(dsum), sum(residual), y(residual), dx(dy);
  Memory<M> mean(kRows), rstd(kRows), sums(2 * kWidth), work(2 * kWidth);
  const bool layer = c.kind == NormKind::Layer;
  const NormForwardRows<T> forward{c.kind,
                                   kWidth,
                                   M(1e-5),
                                   r.data(),
                                   c.branch ? b.data() : nullptr,
                                   c.bias ? bb.data() : nullptr,
                                   c.branch ? sum.data() : nullptr,
                                   w.data(),
                                   layer ? s.data() : nullptr,
                                   y.data(),
                                   layer ? mean.data() : nullptr,
                                   rstd.data()};
  T* const x = c.branch ? sum.data() : r.data();
  const NormBackwardRows<T> backward{
      c.kind, kWidth, c.dsum ? ds.data() : nullptr, d.data(), x, w.data(), mean.data(), rstd.data(), dx.data()};
  run_team(team_size, [&](const HostTeam& team) {
    for (int64_t row = 0; row < kRows; ++row) team_norm_forward<N>(forward, row, team);
  });
  run_team(team_size, [&](const HostTeam& team) {
    team_norm_backward<N>(backward, {0, kRows}, team, work.data(), sums.data());
  });

  Numbers all_y, all_dx, dw(kWidth), db(kWidth);
  for (int64_t row = 0; row < kRows; ++row) {
    Numbers v, g, u;
    double m = 0, square = 0, gm = 0, gum = 0;
    for (int64_t j = 0; j < kWidth; ++j) {
      const int64_t at = row * kWidth + j;
      const double joined = residual[at] + (c.branch ? branch[at] + (c.bias ? bias[j] : 0) : 0);
      v.push_back(static_cast<double>(static_cast<T>(static_cast<M>(joined))));
      m += layer ? v[j] / kWidth : 0;
    }
    for (const double one : v) square += (one - m) * (one - m) / kWidth;
    const double inverse = 1 / std::sqrt(square + 1e-5);
    for (int64_t j = 0; j < kWidth; ++j) {
      u.push_back((v[j] - m) * inverse);
      g.push_back(dy[row * kWidth + j] * weight[j]);
      gm += layer ? g[j] / kWidth : 0;
      gum += g[j] * u[j] / kWidth;
    }
    for (int64_t j = 0; j < kWidth; ++j) {
      const int64_t at = row * kWidth + j;
      all_y.push_back(u[j] * weight[j] + (layer ? shift[j] : 0));
      all_dx.push_back((g[j] - gm - u[j] * gum) * inverse + (c.dsum ? dsum[at] : 0));
      dw[j] += dy[at] * u[j], db[j] += dy[at];
    }
  }
  expect_near(y.read(kRows * kWidth), all_y, kRounding<T>, "y");
  expect_near(dx.read(kRows * kWidth), all_dx, kRounding<T>, "dx");
  Numbers both = dw;
  both.insert(both.end(), db.begin(), db.end());
  // Where the sum is rounded differently from float64's, a last bit of 16 moves all of unit.
  expect_near(sums.read(2 * kWidth), both, 4 * kRounding<T>, "sums");
}

TYPED_TEST(DeviceBody, Norm) {
  for (const NormCase& c : kNormCases) {
    for (const int team_size : {1, 3}) {
      expect_norm<TypeParam, kPack<TypeParam>>(c, team_size);
      expect_norm<TypeParam, 1>(c, team_size);
    }
  }
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
double silu(double x) { return x / (1 + std::exp(-x)); }
template <class F>
double slope(const F& f, double x) {
  return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5;
}
constexpr double kSlope = 1e-9;  // error of the difference quotient

template <class T, int N>
void expect_activations() {
  using M = MathOf<T>;
  const int64_t n = kRows * kWidth;
  const auto h = some<T>(n, 1, 5), bias = some<T>(kWidth, 2), dy = some<T>(n, 3), gu = some<T>(2 * n, 4, 5);
  Memory<T> hm(h), bm(bias), dm(dy), ym(n), gm(gu), sm(n);
  Memory<M> sums(kWidth);
  for (int64_t i = 0; i < n / N; ++i) pack_gelu_forward<N, T>({kWidth, hm.data(), bm.data(), ym.data()}, i);
  for (int64_t i = 0; i < n / N; ++i) pack_swiglu_forward<N, T>({kWidth, gm.data(), sm.data()}, i);
  for (int64_t j = 0; j < kWidth; j += N) {
    column_gelu_backward<N, T>({kWidth, dm.data(), hm.data(), bm.data(), hm.data()}, j, {0, kRows}, sums.data());
  }
  for (int64_t i = 0; i < n / N; ++i) pack_swiglu_backward<N, T>({kWidth, dm.data(), gm.data(), gm.data()}, i);

  Numbers y, dh, dbias(kWidth), s, dgu(2 * n);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = i / kWidth, j = i % kWidth, gate = row * 2 * kWidth + j;
    y.push_back(gelu(h[i] + bias[j]));
    dh.push_back(dy[i] * slope(gelu, h[i] + bias[j]));
    dbias[j] += dh.back();
    s.push_back(silu(gu[gate]) * gu[gate + kWidth]);
    dgu[gate] = dy[i] * gu[gate + kWidth] * slope(silu, gu[gate]);
    dgu[gate + kWidth] = dy[i] * silu(gu[gate]);
  }
  expect_near(ym.read(n), y, kRounding<T>, "gelu");
  expect_near(hm.read(n), dh, kRounding<T> + kSlope, "dh");
  expect_near(sums.read(kWidth), dbias, kRounding<M> * 10 + kSlope, "dbias");
  expect_near(sm.read(n), s, kRounding<T>, "swiglu");
  expect_near(gm.read(2 * n), dgu, kRounding<T> + 10 * kSlope, "dgate_up");
}

TYPED_TEST(DeviceBody, Activations) {
  expect_activations<TypeParam, kPack<TypeParam>>();
  expect_activations<TypeParam, 1>();
}

TEST(DeviceBody, LogisticLosesNothingFarOut) {
  EXPECT_EQ(logistic(-200.0f).value, 0.0f);
  EXPECT_FLOAT_EQ(logistic(-80.0f).value, std::exp(-80.0f));
  EXPECT_FLOAT_EQ(logistic(80.0f).complement, std::exp(-80.0f));
  EXPECT_EQ(logistic(200.0f).value, 1.0f);
}

TYPED_TEST(DeviceBody, RotaryTurnsThereAndBack) {
  using T = TypeParam;
  using M = MathOf<T>;
  constexpr int64_t kTime = 3, kHeads = 2, kHalf = 8, kStride = 48, kTokens = 6;
  const auto x = some<T>(kTokens * kStride, 1);
  Numbers cos, sin;
  for (int64_t i = 0; i < kTime * kHalf; ++i) {
    cos.push_back(static_cast<double>(static_cast<M>(std::cos(0.3 * i))));
    sin.push_back(static_cast<double>(static_cast<M>(std::sin(0.3 * i))));
  }
  Memory<T> xm(x);
  Memory<M> cm(cos), sm(sin);
  RotaryRows<T> rows{xm.data(), kStride, kHeads, kHalf, cm.data(), sm.data(), kTime, M(1)};
  for (int64_t i = 0; i < kTokens * kHeads * kHalf / kPack<T>; ++i) pack_rotary<kPack<T>>(rows, i);
  Numbers expected = x;
  for (int64_t token = 0; token < kTokens; ++token) {
    for (int64_t i = 0; i < kHeads * kHalf; ++i) {
      const int64_t at = token * kStride + i / kHalf * 2 * kHalf + i % kHalf, angle = token % kTime * kHalf + i % kHalf;
      expected[at] = x[at] * cos[angle] - x[at + kHalf] * sin[angle];
      expected[at + kHalf] = x[at + kHalf] * cos[angle] + x[at] * sin[angle];
    }
  }
  expect_near(xm.read(x.size()), expected, kRounding<T>, "turned");
  rows.direction = -1;
  for (int64_t i = 0; i < kTokens * kHeads * kHalf; ++i) pack_rotary<1>(rows, i);
  expect_near(xm.read(x.size()), x, 2 * kRounding<T>, "turned back");
}

TYPED_TEST(DeviceBody, SumsOfRowsInParts) {
  using T = TypeParam;
  using M = MathOf<T>;
  const auto x = some<T>(kRows * kWidth, 1);
  Memory<T> xm(x);
  Memory<M> parts(2 * kWidth), to(some<M>(kWidth, 9));
  const Numbers before = to.read(kWidth);
  for (int64_t j = 0; j < kWidth; j += kPack<T>) {
    column_sum<kPack<T>, T>({xm.data(), kWidth}, j, {0, 2}, parts.data());
    column_sum<kPack<T>, T>({xm.data(), kWidth}, j, {2, kRows}, parts.data() + kWidth);
  }
  Numbers sums(kWidth), added = before;
  for (int64_t i = 0; i < kRows * kWidth; ++i) sums[i % kWidth] += x[i], added[i % kWidth] += x[i];
  for (const M keep : {M(1), M(0)}) {
    for (int64_t j = 0; j < kWidth; ++j) {
      column_of_parts(SumParts<M>{parts.data(), 2, kWidth, to.data()}, j, keep);
    }
    expect_near(to.read(kWidth), keep == 1 ? added : sums, kRounding<M>, "sums");
  }
}

TEST(DeviceBody, MaskIsAFunctionOfKeyPlaceAndElement) {
  constexpr int64_t kCount = 100003;
  const auto mask = [&](uint64_t key, uint64_t place, uint64_t threshold) {
    std::vector<char> keep(kCount, 2);
    const KeepMask call{&key, place, threshold, reinterpret_cast<bool*>(keep.data()), kCount};
    for (int64_t i = 0; 4 * i < kCount; ++i) draw_keep_mask(call, i);
    return keep;
  };
  const auto some = mask(7, 3, (uint64_t{1} << 32) / 10 * 9);
  const auto kept = std::count(some.begin(), some.end(), 1);
  EXPECT_NEAR(static_cast<double>(kept) / kCount, 0.9, 0.004);
  EXPECT_EQ(std::count(some.begin(), some.end(), 0), kCount - kept) << "every element is written";
  EXPECT_EQ(some, mask(7, 3, (uint64_t{1} << 32) / 10 * 9));
  EXPECT_NE(some, mask(7, 4, (uint64_t{1} << 32) / 10 * 9));
  EXPECT_NE(some, mask(8, 3, (uint64_t{1} << 32) / 10 * 9));
  const auto all = mask(7, 3, uint64_t{1} << 32);
  EXPECT_EQ(std::count(all.begin(), all.end(), 1), kCount);
}

}  // namespace
}  // namespace braid::kernels::device_bodies_test
