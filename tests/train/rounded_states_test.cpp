// optimizer.state_dtype = "bfloat16": the same bits on every layout and after a resume on another one, conversions of
// checkpoints, and the loss beside that of float32 states.
#include <gtest/gtest.h>

#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/manifest.h"
#include "braid/train/resumed_state.h"
#include "tests/train/layout_run.h"
#include "tests/train/saved_run.h"

namespace braid::train::rounded_states_test {
namespace {

const std::vector<SavedLayout> kLayouts = {
    {{.data = 2}},
    {{.data = 2}, 1},
    {{.data = 4}, 2},
    {{.data = 2}, 3},
    {{.tensor = 2, .sequence_parallel = true}},
    {{.tensor = 4}},
    {{.pipe = 2}, 0, "zb-h1"},
    {{.pipe = 2}, 0, "dualpipe"},
    {{.pipe = 2, .data = 2, .tensor = 2}, 1},
};

RunSpec spec_of(OptimizerKind kind, const SavedLayout& layout, StateType states = StateType::BFloat16) {
  RunSpec spec = saved_spec(kind, states, layout);
  spec.model.width = 40, spec.model.head_width = 0;  // rows of a matrix are no multiples of a power of two
  return spec;
}

bool is_state(const std::string& name) { return !ckpt::is_weight(name); }

using RoundedStates = SavedRun;

TEST_F(RoundedStates, HaveTheSameBitsOnEveryLayoutAndAfterAResume) {
  using enum OptimizerKind;
  for (const auto kind : {AdamW, Lion, Adagrad, Sgd}) {
    const std::string alone = cat("alone-", word(kind));
    const Tensors want = trained(spec_of(kind, {}), "", alone);
    for (const auto& [name, tensor] : want) {
      EXPECT_EQ(tensor.scalar_type(), is_state(name) ? at::kBFloat16 : at::kFloat) << name;
    }
    EXPECT_FALSE(same_bits(trained(spec_of(kind, {}, StateType::Float32), ""), want));
    size_t number = 0;
    for (const SavedLayout& layout : kLayouts) {
      if (kind != AdamW && ++number % 4 != 0) continue;
      const auto& [pipe, data, context, expert, tensor, form, ulysses, split, overlap, per_node, shares] = layout.mesh;
      SCOPED_TRACE(cat(kind, " pipe ", pipe, " data ", data, " tensor ", tensor, " zero ", layout.zero));
      const RunSpec spec = spec_of(kind, layout);
      const std::string saved = cat("saved-", word(kind), number, pipe, data, tensor, layout.zero, layout.schedule);
      EXPECT_TRUE(same_bits(trained(spec, "", saved), want));
      EXPECT_TRUE(same_bits(tensors_of_checkpoint(path(saved)), tensors_of_checkpoint(path(alone))));
      EXPECT_TRUE(same_bits(trained(spec, alone), want)) << "resumed from one rank";
      EXPECT_TRUE(same_bits(trained(spec_of(kind, {}), saved), want)) << "resumed on one rank";
    }
  }
}

TEST_F(RoundedStates, OfBfloat16WeightsHaveTheSameBitsToo) {
  RunSpec spec = spec_of(OptimizerKind::AdamW, {});
  spec.train.dtype = DType::BFloat16;
  const Tensors want = trained(spec, "");
  spec.mesh = {.data = 2, .tensor = 2};
  spec.sync.zero = 2;
  EXPECT_TRUE(same_bits(trained(spec, ""), want));
}

TEST_F(RoundedStates, AreConvertedOnAResumeThatAllowsIt) {
  const SavedLayout layout{{.data = 2, .tensor = 2}, 1};
  const RunSpec wide = spec_of(OptimizerKind::AdamW, layout, StateType::Float32);
  const RunSpec narrow = spec_of(OptimizerKind::AdamW, layout);
  trained(wide, "", "wide");
  trained(narrow, "", "narrow");
  const auto refusal = [&](RunSpec spec, const std::string& from) {
    try {
      trained(spec, from);
      return std::string();
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refusal(narrow, "wide"),
            cat("optimizer.state_dtype = \"bfloat16\": must be as in ", path("wide"),
                ", unless it is allowed to change; nearest valid is \"float32\"\n",
                "train.allow_change = []: would have to name what is to change: train.allow_change = "
                "[\"optimizer.state_dtype\"]"));
  const auto resumed = [&](RunSpec spec, const std::string& from) {
    spec.train.allow_change = {"optimizer.state_dtype"};
    spec.train.steps = 2;  // saves what it has loaded
    return trained(spec, from);
  };
  const Tensors was_wide = tensors_of_checkpoint(path("wide")), was_narrow = tensors_of_checkpoint(path("narrow"));
  for (const auto& [name, tensor] : resumed(narrow, "wide")) {
    const at::ScalarType type = is_state(name) ? at::kBFloat16 : at::kFloat;
    EXPECT_TRUE(tensor.equal(was_wide.at(name).to(type))) << name << ": the nearest value";
  }
  for (const auto& [name, tensor] : resumed(wide, "narrow")) {
    EXPECT_TRUE(tensor.equal(was_narrow.at(name).to(at::kFloat))) << name << ": the same value";
  }
  RunSpec told = narrow;
  told.train.resume = path("wide");
  told.train.allow_change = {"optimizer.state_dtype"};
  EXPECT_EQ(resumed_state_of(told).choices.back(),
            cat("optimizer.state_dtype = \"bfloat16\"; it was \"float32\" in ", path("wide")));
}

// A unit in the last place of bfloat16 is at most 2^-7 of a value, and a stochastic rounding has at most the standard
// deviation of half a unit. A moment with decay b that is rounded in every step deviates by at most 2^-8 / sqrt(1 -
// b^2) of its size over the last steps: 0.90 % for b = 0.9, and 1.25 % for b = 0.95. AdamW takes the root of the second
// moment. So a step deviates by at most sqrt(0.90^2 + 0.63^2) = 1.09 % in each element, with mean zero to first order.
// To first order, so does what the steps gain in loss, if all elements deviate alike. The bound is three of these.
TEST_F(RoundedStates, TrainToTheLossOfFloat32States) {
  const auto losses = [](StateType states) {
    RunSpec spec = spec_of(OptimizerKind::AdamW, {}, states);
    spec.train.reduction = Reduction::Fast;
    spec.train.microbatch = 8;
    spec.train.steps = spec.optimizer.decay_steps = 60;
    return train_layout(spec).losses;
  };
  const auto wide = losses(StateType::Float32), narrow = losses(StateType::BFloat16);
  const double gained = wide.front() - wide.back();
  EXPECT_GT(gained, 0.5);
  const double deviation = 0x1p-8 * std::sqrt(1 / (1 - 0.9 * 0.9) + 0.25 / (1 - 0.95 * 0.95));
  EXPECT_NEAR(deviation, 0.0109, 1e-4);
  EXPECT_NEAR(narrow.back(), wide.back(), 3 * deviation * gained);
  EXPECT_NE(narrow.back(), wide.back()) << "states are in float32";
}

}  // namespace
}  // namespace braid::train::rounded_states_test
