// The guarantees of every kind of compression: replicas with the same bits, nothing lost but the last residual, exact
// bytes, state that can be saved, and results that do not depend on buckets.
#include <gtest/gtest.h>

#include <cmath>

#include "braid/sync/reducers/block_codecs.h"
#include "braid/sync/reducers/make_reducer.h"
#include "braid/sync/reducers/top_k_codec.h"
#include "tests/sync/reducer_steps.h"

namespace braid::sync::compression_test {
namespace {

using namespace sync::tests;

constexpr const char* kKinds[] = {"none", "bfloat16", "float16", "top-k", "one-bit", "eight-bit", "power-sgd"};

bool has_residual(const std::string& kind) { return kind != "none" && kind != "bfloat16" && kind != "float16"; }

SyncSpec spec_of(const std::string& kind) {
  SyncSpec spec;
  spec.compression = value_of<CompressionKind>(kind).value();
  spec.compression_fraction = 0.05;
  spec.compression_rank = 2;
  return spec;
}

struct Outcome {
  std::vector<at::Tensor> steps;                          // the flat gradients after each
  std::vector<std::pair<std::string, at::Tensor>> state;  // after the last
  int64_t bytes = 0;
};

std::string label(const ReducerState& state) {
  return cat(state.kind == ReducerState::Kind::Residual ? "residual" : "directions", "/", state.param);
}

Outcome outcome_of(GradReducer& reducer, const GradLayout& shapes, int rank, std::pair<int64_t, int64_t> steps) {
  Outcome outcome;
  for (int64_t step = steps.first; step < steps.second; ++step) {
    outcome.steps.push_back(gradients(shapes, rank, step));
    reduce(reducer, shapes, outcome.steps.back(), step);
  }
  for (const ReducerState& each : reducer.state()) outcome.state.emplace_back(label(each), each.tensor.clone());
  outcome.bytes = reducer.bytes_sent();
  return outcome;
}

std::vector<Outcome> outcomes(const std::string& kind, int ranks, const GradLayout& shapes, int64_t num_steps) {
  return by_rank(ranks, [&](Communicator& world) {
    const auto reducer = make_reducer(spec_of(kind), world, 5);
    reducer->plan(shapes);
    return outcome_of(*reducer, shapes, world.rank(), {0, num_steps});
  });
}

void expect_same_steps(const Outcome& got, const Outcome& want) {
  ASSERT_EQ(got.steps.size(), want.steps.size());
  for (size_t i = 0; i < got.steps.size(); ++i) EXPECT_TRUE(got.steps[i].equal(want.steps[i])) << "step " << i;
}

class EveryKind : public testing::TestWithParam<const char*> {};

TEST_P(EveryKind, AllReplicasEndWithTheSameBits) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    for (const int ranks : {2, 3, 5}) {
      const auto all = outcomes(GetParam(), ranks, layout(kShapes, 2, type), 4);
      for (const Outcome& each : all) expect_same_steps(each, all[0]);
    }
  }
}

// The applied sums and the residuals of all ranks add up to all gradients.
TEST_P(EveryKind, NothingIsLostButTheLastResiduals) {
  if (std::string(GetParam()).ends_with("float16")) return;  // rounding is not fed back
  const int ranks = 3, num_steps = 12;
  const auto shapes = layout(kShapes, 2);
  const auto all = outcomes(GetParam(), ranks, shapes, num_steps);
  at::Tensor missing = at::zeros({num_flat(shapes)}, shapes.options);
  for (int step = 0; step < num_steps; ++step) {
    for (int rank = 0; rank < ranks; ++rank) missing.add_(gradients(shapes, rank, step));
    missing.sub_(all[0].steps[step]);
  }
  const double owed = missing.norm().item<double>();
  EXPECT_EQ(owed > 0.1, has_residual(GetParam())) << owed;
  for (const Outcome& each : all) {
    for (const auto& [name, tensor] : each.state) {
      if (!name.starts_with("residual/")) continue;
      for (const BucketShape& bucket : shapes.buckets) {
        for (const GradSlice& slice : bucket.slices) {
          if (name == "residual/" + slice.name) missing.narrow(0, slice.begin, tensor.numel()).sub_(tensor.view({-1}));
        }
      }
    }
  }
  EXPECT_LT(missing.abs().max().item<double>(), 1e-12);
}

// A residual that grew without bound would be one that is never told.
TEST_P(EveryKind, ResidualsStayBounded) {
  if (!has_residual(GetParam())) return;
  const auto shapes = layout(kShapes, 2);
  const auto norm = [](const Outcome& outcome) {
    double squares = 0;
    for (const auto& [name, tensor] : outcome.state) {
      if (name.starts_with("residual/")) squares += tensor.square().sum().item<double>();
    }
    return std::sqrt(squares);
  };
  EXPECT_LT(norm(outcomes(GetParam(), 2, shapes, 120)[0]), 2 * norm(outcomes(GetParam(), 2, shapes, 60)[0]));
}

int64_t message_bytes(const std::string& kind, int64_t count) {
  if (kind == "top-k") return TopKCodec(0.05).num_bytes(count);
  if (kind == "one-bit") return OneBitCodec().num_bytes(count);
  return EightBitCodec().num_bytes(count);
}

TEST_P(EveryKind, BytesAreThoseOfTheFormula) {
  const std::string kind = GetParam();
  const int ranks = 2, num_steps = 3;  // 2 (n - 1) / n = 1, so ring bytes are the bytes themselves
  const auto shapes = layout(kShapes, 2, at::kFloat);
  int64_t bytes = num_flat(shapes) * (kind == "none" ? 4 : 2);
  if (kind == "power-sgd") bytes = 4 * (2 * (40 + 30) + 30 + 2 * (8 + 25) + 1 + 2500);
  if (has_residual(kind) && kind != "power-sgd") {
    bytes = 0;
    for (const NamedShape& each : kShapes) bytes += message_bytes(kind, sync::tests::num_elements(each.shape));
  }
  for (const Outcome& each : outcomes(kind, ranks, shapes, num_steps)) EXPECT_EQ(each.bytes, num_steps * bytes);
  if (has_residual(kind) && kind != "power-sgd") {  // every rank tells all others
    EXPECT_EQ(outcomes(kind, 4, shapes, 1)[3].bytes, 3 * bytes);
  } else {
    EXPECT_NEAR(static_cast<double>(outcomes(kind, 4, shapes, 1)[3].bytes), 1.5 * static_cast<double>(bytes), 8);
  }
}

TEST_P(EveryKind, AReducerWithTheSavedStateGoesOnBitForBit) {
  const int ranks = 3;
  const auto shapes = layout(kShapes, 2, at::kFloat);
  const auto whole = outcomes(GetParam(), ranks, shapes, 6);
  const auto first = outcomes(GetParam(), ranks, shapes, 3);
  const auto continued = [&](bool with_state) {
    return by_rank(ranks, [&](Communicator& world) {
      const auto reducer = make_reducer(spec_of(GetParam()), world, 5);
      reducer->plan(shapes);
      const auto state = reducer->state();
      const auto& saved = first[world.rank()].state;
      EXPECT_EQ(state.size(), saved.size());
      for (size_t i = 0; with_state && i < state.size(); ++i) {
        EXPECT_EQ(label(state[i]), saved[i].first);
        at::Tensor(state[i].tensor).copy_(saved[i].second);
      }
      return outcome_of(*reducer, shapes, world.rank(), {3, 6});
    });
  };
  const auto resumed = continued(true), forgetful = continued(false);
  for (int step = 0; step < 3; ++step) {
    EXPECT_TRUE(resumed[0].steps[step].equal(whole[0].steps[3 + step])) << step;
    EXPECT_EQ(forgetful[0].steps[step].equal(whole[0].steps[3 + step]), !has_residual(GetParam())) << step;
  }
}

TEST_P(EveryKind, BucketsDoNotChangeTheResultEvenBetweenSteps) {
  const int ranks = 2;
  const auto small = layout(kShapes, 1, at::kFloat), large = layout(kShapes, 3, at::kFloat);
  const auto want = outcomes(GetParam(), ranks, small, 4);
  const auto got = by_rank(ranks, [&](Communicator& world) {
    const auto reducer = make_reducer(spec_of(GetParam()), world, 5);
    reducer->plan(large);
    Outcome outcome = outcome_of(*reducer, large, world.rank(), {0, 2});
    reducer->plan(small);
    for (const at::Tensor& step : outcome_of(*reducer, small, world.rank(), {2, 4}).steps) {
      outcome.steps.push_back(step);
    }
    return outcome;
  });
  expect_same_steps(got[0], want[0]);
}

TEST_P(EveryKind, PaddingStaysZero) {
  GradLayout shapes = layout({{"padded", {30, 40}}}, 1, at::kFloat);
  shapes.buckets[0].slices[0].runs = {{0, 1000}};  // 25 of 30 rows
  for (const Outcome& each : by_rank(2, [&](Communicator& world) {
         const auto reducer = make_reducer(spec_of(GetParam()), world, 5);
         reducer->plan(shapes);
         Outcome outcome;
         for (int64_t step = 0; step < 3; ++step) {
           const at::Tensor flat = gradients(shapes, world.rank(), step);
           flat.narrow(0, 1000, 200).zero_();
           reduce(*reducer, shapes, flat, step);
           outcome.steps.push_back(flat);
         }
         return outcome;
       })) {
    for (const at::Tensor& step : each.steps) {
      EXPECT_EQ(step.narrow(0, 1000, num_flat(shapes) - 1000).count_nonzero().item<int64_t>(), 0);
      EXPECT_GT(step.narrow(0, 0, 1000).count_nonzero().item<int64_t>(), 10);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compression, EveryKind, testing::ValuesIn(kKinds), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Compression, AGroupOfOneSendsNothingAndChangesNothing) {
  const auto shapes = layout(kShapes, 2, at::kFloat);
  for (const char* kind : kKinds) {
    const auto alone = outcomes(kind, 1, shapes, 2);
    EXPECT_TRUE(alone[0].steps[1].equal(gradients(shapes, 0, 1))) << kind;
    EXPECT_EQ(alone[0].bytes, 0);
    EXPECT_TRUE(alone[0].state.empty());
  }
}

}  // namespace
}  // namespace braid::sync::compression_test
