// Text from weights that were put into a checkpoint by hand. What is printed of it is the command's tests' business.
#include "braid/train/generate.h"

#include <ATen/core/Tensor.h>

#include <limits>

#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/nn/opaque.h"
#include "braid/spec/describe.h"
#include "braid/train/rank_model.h"
#include "tests/support/scratch_folder.h"

namespace braid::train::generate_test {
namespace {

// GPT-2 whose layers are a function of the test's own, of tokens apart or together.
template <model::OpaqueTokens tokens>
model::BlockGraph opaque_layer(const ModelSpec& spec) {
  static const auto function = std::make_shared<const model::OpaqueFunction>(
      model::OpaqueFunction{[](const at::Tensor& x, const std::vector<at::Tensor>&) { return x.sin(); }, tokens});
  return model::BlockBuilder(spec, "btc")
      .linear("mlp.up", "f")
      .opaque(function, "btf")
      .linear("mlp.down", "c")
      .join()
      .build();
}

template <model::OpaqueTokens tokens>
ModelFamily added(const std::string& name) {
  model::Family family = model::families()[static_cast<size_t>(ModelFamily::Gpt2)];
  family.name = name;
  family.blocks.layer = opaque_layer<tokens>;
  family.traits.parts = 1;
  family.names = {};
  family.config = {};
  family.presets.clear();
  family.other_names.clear();
  return model::add_family(family);
}

const ModelFamily kApart = added<model::OpaqueTokens::Apart>("apart");
const ModelFamily kTogether = added<model::OpaqueTokens::Together>("together");

class Generate : public ScratchFolder {
 protected:
  void SetUp() override {
    spec_.data.paths = {"text"};
    spec_.model.layers = 1;
    spec_.model.heads = 2;
    spec_.model.width = 8;
    spec_.model.context = 8;
    spec_.model.vocab = 257;
    options_.num_tokens = 20;
  }

  // A checkpoint of fresh weights, `change` made to them.
  std::string saved(const std::function<void(param::ParamStore&)>& change) {
    run_ranks(1, [&](Communicator& world) {
      const Groups groups(mesh::DeviceMesh(spec_.mesh), StageLayout::single(), world);
      RankModel model(spec_, groups);
      change(model.params());
      std::vector<ckpt::PlacedTensor> tensors;
      for (const param::Parameter& param : model.params().params()) {
        tensors.push_back({param.name, param.placement, param.master});
      }
      RunSpec told = spec_;
      if (claim_) claim_(told.model);
      const ckpt::CheckpointInfo info{1, spec::to_toml(told), "bytes", 0};
      ckpt::save_checkpoint(path("step-1"), {tensors, info}, world);
    });
    return path("step-1");
  }

  RunSpec spec_;
  GenerateOptions options_;
  std::function<void(ModelSpec&)> claim_;  // of what the checkpoint says, not of what it holds
};

TEST_F(Generate, WeightsThatAreNotFiniteAreNamed) {
  std::string name;
  const std::string directory = saved([&](param::ParamStore& store) {
    param::Parameter& last = store.params().back();
    name = last.name;
    last.master.detach().flatten()[0].fill_(std::numeric_limits<double>::quiet_NaN());
  });
  try {
    generate(directory, options_, nullptr);
    FAIL() << "text was made";
  } catch (const RunError& error) {
    EXPECT_EQ(
        error.what(),
        directory + ": no text can be made of weights that are not finite, or too large to compute with: " + name);
  }
}

TEST_F(Generate, WeightsThatAreTooLargeAreNamed) {
  for (const auto& [dtype, value] : {std::pair(DType::Float16, 1e5), {DType::Float64, 1e308}}) {
    spec_.train.dtype = dtype;
    std::string name;
    const std::string directory = saved([&, value = value](param::ParamStore& store) {
      name = store.params().front().name;
      store.params().front().master.detach().flatten()[0].fill_(value);
    });
    try {
      generate(directory, options_, nullptr);
      ADD_FAILURE() << "text was made in " << dtype;
    } catch (const RunError& error) {
      EXPECT_EQ(
          error.what(),
          directory + ": no text can be made of weights that are not finite, or too large to compute with: " + name);
    }
    std::filesystem::remove_all(directory);
  }
}

TEST_F(Generate, ScoresThatOverflowAreNotSampled) {
  const std::string directory = saved([](param::ParamStore& store) {
    for (param::Parameter& param : store.params()) param.master.detach().fill_(3e38);
  });
  EXPECT_THROW(generate(directory, options_, nullptr), RunError);
}

TEST_F(Generate, ASmallShareOfTheProbabilityIsTheLikeliestToken) {
  const std::string directory = saved([](param::ParamStore&) {});
  GenerateOptions greedy = options_, narrow = options_, tiny = options_;
  greedy.temperature = 0;
  narrow.top_p = 1e-9;
  tiny.temperature = 1e-320;  // dividing by it overflows
  const std::string likeliest = generate(directory, greedy, nullptr);
  EXPECT_EQ(generate(directory, narrow, nullptr), likeliest);
  EXPECT_EQ(generate(directory, tiny, nullptr), likeliest);
  EXPECT_NE(generate(directory, options_, nullptr), likeliest);
}

TEST_F(Generate, AFunctionOfTokensTogetherIsRefused) {
  spec_.model.family = kApart;
  EXPECT_NE(generate(saved([](param::ParamStore&) {}), options_, nullptr), "");
  std::filesystem::remove_all(path("step-1"));
  spec_.model.family = kTogether;
  const std::string directory = saved([](param::ParamStore&) {});
  try {
    generate(directory, options_, nullptr);
    FAIL() << "text was made";
  } catch (const ConfigError& error) {
    EXPECT_EQ(text(error.problems().at(0)),
              "model.family = together: must have no function of tokens together to continue text, since new tokens "
              "are computed alone, and " +
                  directory + " has opaque btf->btf; a function of each token by itself says OpaqueTokens::Apart");
  }
}

// Before memory is asked for as much as is claimed.
TEST_F(Generate, AConfigurationThatClaimsAnotherModelIsRefused) {
  const std::pair<std::function<void(ModelSpec&)>, std::string> claims[] = {
      {[](ModelSpec& model) { model.layers = 60'000; }, "its configuration has 60000 layers, and it lists 16 tensors"},
      {[](ModelSpec& model) { model.layers = 2; }, "it lists no blocks.1.ln_1.weight"},
      {[](ModelSpec& model) { model.width = 1 << 20; }, "wte.weight has another shape"}};
  for (const auto& [claim, why] : claims) {
    claim_ = claim;
    const std::string directory = saved([](param::ParamStore&) {});
    try {
      generate(directory, options_, nullptr);
      ADD_FAILURE() << "text was made; " << why;
    } catch (const IoError& error) {
      EXPECT_EQ(error.what(),
                directory + "/manifest.json: describes another model than it lists the weights of: " + why);
    }
    std::filesystem::remove_all(directory);
  }
}

TEST_F(Generate, AnotherTokenizerMustFitTheModel) {
  spec_.model.vocab = 200;
  spec_.data.tokenizer = "made-up";  // with bytes, the configuration itself would be refused
  const std::string directory = saved([](param::ParamStore&) {});
  options_.tokenizer = "bytes";
  try {
    generate(directory, options_, nullptr);
    FAIL() << "text was made";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 1u);
    EXPECT_EQ(text(error.problems()[0]),
              "data.tokenizer = bytes: must have at most 200 tokens, as many as the model of " + directory +
                  " knows, and has 257");
  }
}

}  // namespace
}  // namespace braid::train::generate_test
