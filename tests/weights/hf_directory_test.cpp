// Models saved by transformers give its logits; mismatches are refused, all at once.
#include "braid/weights/hf_directory.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "braid/base/errors.h"
#include "braid/ckpt/safetensors.h"
#include "braid/layout/parameters.h"
#include "braid/spec/masking.h"
#include "tests/nn/model_run.h"
#include "tests/support/scratch_folder.h"
#include "tests/weights/hf_families.h"

namespace braid::weights::hf_directory_test {
namespace {

std::vector<double> expected_logits(const std::string& family) {
  std::ifstream file(hf_family_folder(family) + "_logits.txt");
  std::string name;
  file >> name;
  std::vector<double> numbers;
  for (double number; file >> number;) numbers.push_back(number);
  return numbers;
}

// Returns the logits of the first 24 tokens of the formula, in float64, assembled from `ranks` tensor ranks.
at::Tensor logits_on(const HfDirectory& source, int ranks) {
  constexpr int64_t kTokens = 24;
  ModelRun run{source.model(), ranks};
  run.spec.vocab_multiple = 1;
  Gathering results(ranks);
  run_ranks(ranks, [&](Communicator& group) {
    const at::NoGradGuard no_grad;
    RunModel model(run, group);
    for (param::Parameter& each : model.world.store.params()) {
      each.master.zero_();
      source.read({each.name, each.placement, each.master});
    }
    nn::Microbatch m;
    m.training = false;
    m.tokens_bt = formula_integers("tokens", {2, kTokens}, run.spec.vocab);
    const at::Tensor logits = model.forward(m);
    const mesh::Index shape{2, kTokens, run.spec.vocab};
    const mesh::Placement placement =
        mesh::split_dim(shape, 2, model::padded_vocab(run.spec, ranks), {group.rank(), ranks, mesh::Axis::Tensor});
    results.put("logits", group.rank(), placement, logits.masked_fill(logits.isneginf(), 0));
  });
  return results.global().at("logits");
}

class HfFamilies : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, HfFamilies, testing::ValuesIn(hf_families()),
                         [](const auto& info) { return info.param; });

TEST_P(HfFamilies, LogitsAreThoseOfTransformers) {
  const HfDirectory source(hf_family_folder(GetParam()));
  const std::vector<double> expected = expected_logits(GetParam());
  for (const int ranks : {1, 2}) {
    const at::Tensor logits = logits_on(source, ranks).flatten();
    ASSERT_EQ(logits.numel(), static_cast<int64_t>(expected.size()));
    double largest = 0;
    for (int64_t i = 0; i < logits.numel(); ++i) {
      largest = std::max(largest, std::abs(logits[i].item<double>() - expected[i]));
    }
    EXPECT_LT(largest, 1e-10) << ranks << " ranks";
  }
}

// Token after token, each from all that are before it.
TEST_P(HfFamilies, GreedyTokensAreThoseOfTransformers) {
  if (spec::is_masked(HfDirectory(hf_family_folder(GetParam())).model())) return;  // it continues no text
  const auto golden = nlohmann::json::parse(
      std::ifstream(std::string(BRAID_SOURCE_DIR) + "/tests/nn/data/" + GetParam() + "_greedy.json"));
  const HfDirectory source(hf_family_folder(GetParam()));
  run_ranks(1, [&](Communicator& group) {
    const at::NoGradGuard no_grad;
    RunModel model(ModelRun{source.model()}, group);
    for (param::Parameter& each : model.world.store.params())
      source.read({each.name, each.placement, each.master.zero_()});
    auto tokens = golden.at("prompt").get<std::vector<int64_t>>();
    const auto expected = golden.at("tokens").get<std::vector<int64_t>>();
    ASSERT_EQ(expected.size(), 64u);
    for (const int64_t token : expected) {
      nn::Microbatch m;
      m.training = false;
      m.tokens_bt = at::tensor(tokens, at::kLong).unsqueeze(0);
      const auto size = static_cast<int64_t>(tokens.size());
      ASSERT_EQ(model.forward(m).select(0, 0).select(0, size - 1).argmax().item<int64_t>(), token) << size;
      tokens.push_back(token);
    }
  });
}

TEST(HfTensors, CoverEveryParameterOnce) {
  for (const ModelSpec& spec : {tiny_gpt2(), tiny_llama3(), tiny_qwen2(), tiny_qwen3(), tiny_gemma2()}) {
    std::map<std::string, int64_t> rows;
    for (const HfTensor& each : hf_tensors(spec)) {
      EXPECT_EQ(each.first_row, rows[each.whole]) << each.name;
      rows[each.whole] += each.num_rows;
      EXPECT_EQ(each.name.find(".."), std::string::npos);
      EXPECT_LE(rows[each.whole], each.whole_shape[0]);
    }
    for (const layout::BlockSpec& block : layout::model_params(spec, 0, 1)) {
      for (const layout::ParamSpec& param : block.params)
        EXPECT_EQ(rows[param.name], param.placement.global_shape[0]) << param.name;
    }
  }
}

class HfDirectoryFaults : public ScratchFolder {
 protected:
  void copy(const std::string& family) const {
    std::filesystem::copy(hf_family_folder(family), folder_, std::filesystem::copy_options::recursive);
  }
  void replace(const std::string& name, const std::string& from, const std::string& to) const {
    std::string text = content(path(name));
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(path(name), text.replace(at, from.size(), to));
  }
  std::string complaint() const {
    try {
      HfDirectory{folder_};
    } catch (const std::runtime_error& error) {
      std::string text = error.what();
      for (auto at = text.find(folder_); at != std::string::npos; at = text.find(folder_)) {
        text.replace(at, folder_.size(), "DIR");
      }
      return text;
    }
    return "accepted";
  }
};

TEST_F(HfDirectoryFaults, EveryTensorThatDoesNotFitIsNamed) {
  copy("mistral");
  replace("config.json", "\"intermediate_size\": 48", "\"intermediate_size\": 47");
  replace("model.safetensors", "model.norm.weight", "model.morn.weight");
  EXPECT_EQ(complaint(),
            "model.layers.0.mlp.gate_proj.weight = [48, 32]: must have the shape [47, 32] that config.json asks for\n"
            "model.layers.0.mlp.up_proj.weight = [48, 32]: must have the shape [47, 32] that config.json asks for\n"
            "model.layers.0.mlp.down_proj.weight = [32, 48]: must have the shape [32, 47] that config.json asks for\n"
            "model.layers.1.mlp.gate_proj.weight = [48, 32]: must have the shape [47, 32] that config.json asks for\n"
            "model.layers.1.mlp.up_proj.weight = [48, 32]: must have the shape [47, 32] that config.json asks for\n"
            "model.layers.1.mlp.down_proj.weight = [32, 48]: must have the shape [32, 47] that config.json asks for\n"
            "model.norm.weight: is not in DIR\n"
            "model.morn.weight = [32]: is no tensor of the model that config.json describes");
}

TEST_F(HfDirectoryFaults, AFamilyThatIsNotKnownIsSaidSo) {
  copy("mistral");
  replace("config.json", "\"mistral\"", "\"mamba\"");
  EXPECT_EQ(complaint(),
            "DIR/config.json: model_type = \"mamba\": must be one of \"gpt2\", \"llama\", \"mistral\", \"qwen2\", "
            "\"qwen3\", \"mixtral\", \"qwen3_moe\", \"bert\", \"gemma2\"; nearest valid is \"gpt2\"");
}

TEST_F(HfDirectoryFaults, ExpertsArePlannedAndNotRead) {
  copy("mistral");
  replace("config.json", "\"mistral\"", "\"mixtral\", \"num_local_experts\": 8, \"num_experts_per_tok\": 2");
  EXPECT_EQ(complaint(), "DIR/config.json: must be of a dense model: experts are planned, not read");
}

TEST_F(HfDirectoryFaults, AnIndexNamesFilesOfItsFolderOnly) {
  copy("llama");
  replace("model.safetensors.index.json", "\"model-00001-of-00002.safetensors\"", "\"../model.safetensors\"");
  EXPECT_EQ(complaint(),
            "DIR/model.safetensors.index.json: model.embed_tokens.weight = ../model.safetensors: must be a file of "
            "this folder, "
            "NAME.safetensors of letters, digits, '_', '-' and '.'");
}

TEST_F(HfDirectoryFaults, AnIndexMustSayWhereTensorsAre) {
  copy("llama");
  replace("model.safetensors.index.json", "\"model-00001-of-00002.safetensors\"",
          "\"model-00002-of-00002.safetensors\"");
  EXPECT_EQ(complaint(),
            "DIR/model.safetensors.index.json: model.embed_tokens.weight = model-00002-of-00002.safetensors: does not "
            "hold the "
            "tensor; nearest valid is model-00001-of-00002.safetensors");
}

TEST_F(HfDirectoryFaults, FilesThatAreCutShortAreNamed) {
  copy("qwen2");
  const std::string whole = content(path("model.safetensors"));
  write(path("model.safetensors"), whole.substr(0, whole.size() - 5));
  EXPECT_NE(complaint().find("DIR/model.safetensors"), std::string::npos) << complaint();
}

TEST_F(HfDirectoryFaults, AHeadThatIsTiedAndHasOtherValuesIsNotPassedOver) {
  EXPECT_TRUE(HfDirectory(hf_family_folder("qwen2")).problems_of_tied_head().empty());
  copy("mistral");
  replace("config.json", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
  const auto problems = HfDirectory(folder_).problems_of_tied_head();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].key, "lm_head.weight");
}

TEST_F(HfDirectoryFaults, ATiedHeadOfAnotherTypeIsCompared) {
  copy("mistral");
  replace("config.json", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
  const CheckedFile file(path("model.safetensors"));
  const ckpt::SafetensorsHeader header = ckpt::read_header(file);
  std::string bytes = content(path("model.safetensors")).substr(header.data_begin);
  std::vector<ckpt::TensorEntry> entries = header.tensors;
  for (ckpt::TensorEntry& entry : entries) {
    if (entry.info.name != "lm_head.weight") continue;
    EXPECT_EQ(entry.info.type, ckpt::ElementType::F16);
    entry.info.type = ckpt::ElementType::I16;
  }
  write(path("model.safetensors"), ckpt::header_bytes(entries, {}) + bytes);
  const auto problems = HfDirectory(folder_).problems_of_tied_head();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(text(problems[0]), "lm_head.weight = I16: must be F16, BF16, F32 or F64");
}

TEST_F(HfDirectoryFaults, RulesOfTheModelComeBeforeItsTensors) {
  copy("mistral");
  replace("config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 3");
  EXPECT_NE(complaint().find("DIR/config.json: model."), std::string::npos) << complaint();
  std::filesystem::remove_all(folder_);
  copy("mistral");
  replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1073741824");
  EXPECT_EQ(complaint(), "DIR/config.json: model.layers = 1073741824: must be at most 65536; nearest valid is 65536");
  replace("config.json", "1073741824", "60000");
  EXPECT_EQ(complaint(),
            "DIR/config.json: model.layers = 60000: must be at most 21, the number of tensors in the files");
}

// A base model's files leave the prefix out, and old ones have masks.
TEST_F(HfDirectoryFaults, NamesOfABaseModelAreTaken) {
  copy("gpt2");
  const std::string whole = content(path("model.safetensors"));
  const CheckedFile file(path("model.safetensors"));
  const ckpt::SafetensorsHeader header = ckpt::read_header(file);
  std::vector<ckpt::TensorEntry> entries = header.tensors;
  for (ckpt::TensorEntry& entry : entries) entry.info.name = entry.info.name.substr(std::string("transformer.").size());
  const int64_t end = entries.back().end;
  const HfDirectory named(hf_family_folder("gpt2"));
  const std::pair<ckpt::ElementType, int64_t> masks[] = {{ckpt::ElementType::U8, 16},
                                                         {ckpt::ElementType::Bool, 16},
                                                         {ckpt::ElementType::F4, 8},
                                                         {ckpt::ElementType::F8_E4M3, 16},
                                                         {ckpt::ElementType::U64, 128}};
  for (const auto& [type, bytes] : masks) {
    std::vector<ckpt::TensorEntry> all = entries;
    all.push_back({{"h.0.attn.bias", type, {1, 1, 4, 4}}, end, end + bytes});
    write(path("model.safetensors"), ckpt::header_bytes(all, {}) + whole.substr(header.data_begin) +
                                         std::string(static_cast<size_t>(bytes), '\1'));
    EXPECT_TRUE(logits_on(HfDirectory(folder_), 1).equal(logits_on(named, 1))) << ckpt::text(type);
  }
}

}  // namespace
}  // namespace braid::weights::hf_directory_test
