// optimizer.state_dtype = "int8": the same bits on every layout, on disk and after a resume on another layout,
// conversions of checkpoints, refused layouts, and the loss beside that of float32 states.
#include "braid/optim/quantized_states.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/manifest.h"
#include "tests/train/layout_run.h"
#include "tests/train/saved_run.h"

namespace braid::train::quantized_states_test {
namespace {

const std::vector<SavedLayout> kLayouts = {
    {{.data = 2}, 1},          {{.data = 4}, 2},
    {{.data = 2}, 3},          {{.tensor = 2, .sequence_parallel = true}},
    {{.pipe = 2}, 0, "zb-h1"}, {{.pipe = 2, .data = 2, .tensor = 2}, 1},
};

// Two tensor ranks have 64 features of the heads each.
RunSpec spec_of(OptimizerKind kind, const SavedLayout& layout, StateType states = StateType::Int8) {
  RunSpec spec = saved_spec(kind, states, layout);
  spec.model.width = 128, spec.model.ffn = 128;
  return spec;
}

RunSpec on_disk(RunSpec spec) {
  spec.memory.optimizer = spec.memory.gradients = spec.memory.parameters = Tier::Disk;
  spec.memory.paths = {"."};  // the files have no names
  spec.memory.chunk_mb = 1.0 / 128;
  return spec;
}

using QuantizedRuns = SavedRun;

TEST_F(QuantizedRuns, HaveTheSameBitsOnEveryLayoutAndAfterAResume) {
  using enum OptimizerKind;
  size_t number = 0;
  for (const auto kind : {AdamW, Lion, Adagrad, Sgd}) {
    const std::string alone = cat("alone-", word(kind));
    const Tensors want = trained(spec_of(kind, {}), "", alone);
    EXPECT_FALSE(same_bits(trained(spec_of(kind, {}, StateType::Float32), ""), want));
    for (const SavedLayout& layout : kLayouts) {
      if (++number, kind != AdamW && number % 5 != 0) continue;
      const auto& [pipe, data, context, expert, tensor, form, ulysses, split, overlap, per_node, shares] = layout.mesh;
      SCOPED_TRACE(cat(kind, " pipe ", pipe, " data ", data, " tensor ", tensor, " zero ", layout.zero));
      const RunSpec spec = spec_of(kind, layout);
      const std::string saved = cat("saved-", word(kind), pipe, data, tensor, layout.zero, layout.schedule);
      EXPECT_TRUE(same_bits(trained(spec, "", saved), want));
      if (number % 2 == 0) {
        EXPECT_TRUE(same_bits(trained(spec, alone), want)) << "resumed from one rank";
      } else {
        EXPECT_TRUE(same_bits(trained(spec_of(kind, {}), saved), want)) << "resumed on one rank";
      }
    }
  }
}

TEST_F(QuantizedRuns, HaveTheSameBitsOnDisk) {
  for (const SavedLayout& layout : {SavedLayout{}, SavedLayout{{.data = 2}, 3}, SavedLayout{{.tensor = 2}}}) {
    RunSpec spec = spec_of(OptimizerKind::AdamW, layout);
    spec.train.dtype = layout.zero > 0 ? DType::BFloat16 : DType::Float32;
    const std::string name = cat("memory", layout.mesh.data, layout.mesh.tensor);
    const Tensors want = trained(spec, "", name);
    EXPECT_TRUE(same_bits(trained(on_disk(spec), ""), want));
    EXPECT_TRUE(same_bits(trained(on_disk(spec), name), want)) << "resumed";
  }
}

// A checkpoint has a byte for each element and a scale for each 64 elements, of rows where these are whole blocks.
TEST_F(QuantizedRuns, SaveCodesAndScales) {
  RunSpec spec = spec_of(OptimizerKind::AdamW, {});
  trained(spec, "", "codes");
  const auto tensors = ckpt::read_manifest(path("codes")).tensors;
  const auto shape = [&](const char* name) { return tensors.at(name).shape; };
  EXPECT_EQ(tensors.at("adamw.first_moment/blocks.0.mlp.down.weight").type, ckpt::ElementType::U8);
  EXPECT_EQ(tensors.at("adamw.first_moment.absmax/blocks.0.mlp.down.weight").type, ckpt::ElementType::F32);
  EXPECT_EQ(shape("adamw.first_moment/blocks.0.mlp.down.weight"), (mesh::Index{128, 128}));
  EXPECT_EQ(shape("adamw.first_moment.absmax/blocks.0.mlp.down.weight"), (mesh::Index{128, 2}));
  EXPECT_EQ(shape("adamw.second_moment.absmax/blocks.0.mlp.down.bias"), mesh::Index{2});
}

// Codes without their scales would be read as zeros.
TEST_F(QuantizedRuns, DoNotResumeWithoutScales) {
  const RunSpec spec = spec_of(OptimizerKind::AdamW, {});
  trained(spec, "", "whole");
  ckpt::Manifest manifest = ckpt::read_manifest(path("whole"));
  ASSERT_EQ(manifest.tensors.erase("adamw.first_moment.absmax/blocks.0.mlp.down.weight"), 1);
  write(path("whole/manifest.json"), ckpt::manifest_text(manifest));
  EXPECT_THROW(trained(spec, "whole"), ConfigError);
}

TEST_F(QuantizedRuns, AreConvertedOnAResumeThatAllowsIt) {
  const SavedLayout layout{{.data = 2, .tensor = 2}, 1};
  for (const auto other : {StateType::Float32, StateType::BFloat16}) {
    SCOPED_TRACE(word(other));
    const RunSpec numbers = spec_of(OptimizerKind::AdamW, layout, other), codes = spec_of(OptimizerKind::AdamW, layout);
    const std::string wide = cat("wide-", word(other)), narrow = cat("narrow-", word(other));
    trained(numbers, "", wide);
    trained(codes, "", narrow);
    EXPECT_THROW(trained(codes, wide), ConfigError);
    const auto resumed = [&](RunSpec spec, const std::string& from) {
      spec.train.allow_change = {"optimizer.state_dtype"};
      spec.train.steps = 2;  // saves what it has loaded
      return trained(spec, from);
    };
    const Tensors was_wide = tensors_of_checkpoint(path(wide)), was_narrow = tensors_of_checkpoint(path(narrow));
    const Tensors now_narrow = resumed(codes, wide), now_wide = resumed(numbers, narrow);
    for (const auto& [name, tensor] : was_wide) {
      if (ckpt::is_weight(name)) continue;
      const at::Tensor from = tensor.to(at::kFloat).reshape({-1});
      const int64_t padded = (from.numel() + kStateBlock - 1) / kStateBlock * kStateBlock;
      at::Tensor values = at::zeros({padded});
      values.narrow(0, 0, from.numel()).copy_(from);
      std::vector<uint8_t> want(static_cast<size_t>(padded));
      std::vector<float> scales(want.size() / kStateBlock);
      const bool second = name.starts_with("adamw.second_moment");
      const auto sign = second ? optim::StateSign::NonNegative : optim::StateSign::Any;
      optim::quantize(values.const_data_ptr<float>(), padded, sign, want.data(), scales.data());
      const at::Tensor got = now_narrow.at(name);
      ASSERT_EQ(got.scalar_type(), at::kByte);
      EXPECT_TRUE(std::equal(got.const_data_ptr<uint8_t>(), got.const_data_ptr<uint8_t>() + got.numel(), want.begin()));
      const std::string kind = name.substr(0, name.find('/')), param = name.substr(name.find('/'));
      const at::Tensor saved = was_narrow.at(cat(kind, ".absmax", param));
      std::vector<float> back(want.size());
      std::vector<uint8_t> padded_codes(want.size(), 0);
      std::copy_n(was_narrow.at(name).const_data_ptr<uint8_t>(), got.numel(), padded_codes.begin());
      optim::dequantize(padded_codes.data(), saved.const_data_ptr<float>(), padded, sign, back.data());
      const at::Tensor expected =
          at::from_blob(back.data(), {got.numel()}, at::kFloat).to(now_wide.at(name).scalar_type());
      EXPECT_TRUE(now_wide.at(name).reshape({-1}).equal(expected)) << name;
    }
  }
}

TEST_F(QuantizedRuns, AreNotConvertedWhereATensorRankHasAPartOfABlock) {
  RunSpec spec = spec_of(OptimizerKind::AdamW, {});
  spec.model.width = 64;
  trained(spec, "", "codes");
  spec.mesh.tensor = 2;
  spec.optimizer.state_dtype = StateType::Float32;
  spec.train.allow_change = {"optimizer.state_dtype"};
  EXPECT_THROW(trained(spec, "codes"), ConfigError);
}

// 8 features of each head, and 32 on each of two ranks.
TEST_F(QuantizedRuns, AreRefusedWhereATensorRankHasAPartOfABlock) {
  RunSpec spec = spec_of(OptimizerKind::AdamW, {{.tensor = 2}});
  spec.model.width = 64;
  std::string said;
  try {
    trained(spec, "");
  } catch (const ConfigError& error) {
    said = error.what();
  }
  EXPECT_EQ(
      said,
      "optimizer.state_dtype = \"int8\": must be \"float32\" or \"bfloat16\" with mesh.tensor = 2: a tensor rank's "
      "part of blocks.0.attention.qkv.bias is not whole blocks of 64 elements, which share a scale; nearest valid "
      "is \"bfloat16\"");
  RunSpec stateless = spec;
  stateless.optimizer.kind = OptimizerKind::Sgd;
  stateless.optimizer.momentum = 0;
  EXPECT_NO_THROW(trained(stateless, "")) << "there are no states";
  spec.mesh.tensor = 1, spec.model.width = 40;
  EXPECT_NO_THROW(trained(spec, "")) << "blocks go over the ends of rows";
}

// Each element of a first moment is off by at most 0.9 / 128 of the largest of its block and of a second moment by half
// of that, so a step is off by about as much, if elements of a block are of one size. The bound is ten times that.
TEST_F(QuantizedRuns, TrainToTheLossOfFloat32States) {
  const auto losses = [](StateType states) {
    RunSpec spec = spec_of(OptimizerKind::AdamW, {}, states);
    spec.train.reduction = Reduction::Fast;
    spec.train.microbatch = 8;
    spec.train.steps = spec.optimizer.decay_steps = 60;
    return train_layout(spec).losses;
  };
  const auto wide = losses(StateType::Float32), narrow = losses(StateType::Int8);
  const double gained = wide.front() - wide.back();
  EXPECT_GT(gained, 0.5);
  EXPECT_NEAR(narrow.back(), wide.back(), 0.07 * gained);
  EXPECT_NE(narrow.back(), wide.back()) << "states are in float32";
}

}  // namespace
}  // namespace braid::train::quantized_states_test
