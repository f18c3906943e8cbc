// A directory becomes a checkpoint and a directory again: every tensor bit for bit.
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/base/path_look.h"
#include "braid/model/hf_config.h"
#include "braid/model/hf_config_text.h"
#include "braid/param/memory_account.h"
#include "braid/spec/parse.h"
#include "braid/weights/from_hf.h"
#include "braid/weights/hf_directory.h"
#include "braid/weights/to_hf.h"
#include "tests/support/scratch_folder.h"
#include "tests/weights/hf_families.h"

namespace braid::weights::round_trip_test {
namespace {

class RoundTrip : public ScratchFolder, public testing::WithParamInterface<std::string> {
 protected:
  std::string made_checkpoint(const std::string& family) const {
    const std::string to = path("checkpoint");
    PosixFileSystem files;
    checkpoint_from_hf({hf_family_folder(family), to}, files);
    return to;
  }
  // Written of a checkpoint of `model`.
  std::string made_directory(const std::string& checkpoint, at::ScalarType type, int64_t most_file_bytes) const {
    ToHf request;
    request.checkpoint = checkpoint;
    request.model = spec::parse_run(ckpt::read_checkpoint_info(checkpoint).config_toml, "config", {}).model;
    request.written = type;
    request.most_file_bytes = most_file_bytes;
    request.directory = path("directory");
    PosixFileSystem files;
    hf_from_checkpoint(request, files);
    return request.directory;
  }
};
INSTANTIATE_TEST_SUITE_P(All, RoundTrip, testing::ValuesIn(hf_families()), [](const auto& info) { return info.param; });

void expect_same_tensors(const std::string& got_folder, const std::string& want_folder, at::ScalarType type) {
  const TensorFiles got(got_folder), want(want_folder);
  ASSERT_EQ(got.tensors().size(), want.tensors().size());
  for (const auto& [name, info] : want.tensors()) {
    ASSERT_TRUE(got.tensors().contains(name)) << name;
    const int64_t rows = info.shape[0];
    const at::Tensor is = got.rows(name, 0, rows), was = want.rows(name, 0, rows);
    EXPECT_EQ(is.scalar_type(), type) << name;
    EXPECT_TRUE(is.equal(was.to(type))) << name;
  }
}

TEST_P(RoundTrip, EveryTensorComesBackBitForBit) {
  const std::string folder = hf_family_folder(GetParam()), checkpoint = made_checkpoint(GetParam());
  const ckpt::CheckpointInfo info = ckpt::read_checkpoint_info(checkpoint);
  EXPECT_EQ(info.step, 0);
  ckpt::verify_checkpoint(checkpoint);
  const ModelSpec model = HfDirectory(folder).model();
  EXPECT_EQ(spec::parse_run(info.config_toml, "config", {}).model, model);
  const std::string back = made_directory(checkpoint, at::kFloat, 30'000);
  EXPECT_NE(path_kind(back + "/model.safetensors.index.json"), PathKind::Nothing);
  expect_same_tensors(back, folder, at::kFloat);
  EXPECT_EQ(HfDirectory(back).model(), model) << "config.json says the same model";
}

TEST_P(RoundTrip, Bfloat16IsRoundedOnce) {
  const std::string checkpoint = made_checkpoint(GetParam());
  const std::string back = made_directory(checkpoint, at::kBFloat16, 0);
  EXPECT_EQ(names_in(back), (std::vector<std::string>{"config.json", "model.safetensors"}));
  expect_same_tensors(back, hf_family_folder(GetParam()), at::kBFloat16);
}

constexpr const char *kBias = "cls.predictions.bias", *kDecoderBias = "cls.predictions.decoder.bias";

class UntiedBert : public RoundTrip {
 protected:
  // Writes the files of a BERT whose head is tied or not: "true" or "false". All bytes are 1, those of `other` 2.
  static void write_bert(const std::string& folder, const std::string& is_tied, const std::vector<std::string>& more,
                         const std::string& other) {
    const std::string config =
        R"({"model_type": "bert", "vocab_size": 5, "max_position_embeddings": 4, "hidden_size": 4,
                                 "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 3,
                                 "type_vocab_size": 2, "hidden_act": "gelu", "tie_word_embeddings": )";
    const std::string whole = cat(config, is_tied, "}");
    std::filesystem::create_directories(folder);
    write(folder + "/config.json", whole);
    std::vector<Problem> problems;
    std::vector<ckpt::TensorInfo> infos;
    for (const HfTensor& each : hf_tensors(model::parse_hf_config(whole, "config.json", problems)))
      infos.push_back({each.name, ckpt::ElementType::F32, each.shape});
    for (const std::string& name : more) infos.push_back({name, ckpt::ElementType::F32, {5}});
    const std::vector<ckpt::TensorEntry> entries = ckpt::laid_out(infos);
    std::string bytes(static_cast<size_t>(entries.back().end), '\1');
    for (const ckpt::TensorEntry& each : entries) {
      if (each.info.name == other) std::fill(bytes.begin() + each.begin, bytes.begin() + each.end, '\2');
    }
    write(folder + "/model.safetensors", ckpt::header_bytes(entries, {}) + bytes);
  }
};
INSTANTIATE_TEST_SUITE_P(One, UntiedBert, testing::Values("bert"), [](const auto& info) { return info.param; });

// Transformers trains and reads the bias of an untied head as that of its decoder.
TEST_P(UntiedBert, HasTheBiasOfItsDecoder) {
  write_bert(path("source"), "false", {kDecoderBias}, kDecoderBias);
  PosixFileSystem files;
  checkpoint_from_hf({path("source"), path("checkpoint")}, files);
  const at::Tensor bias = TensorFiles(made_directory(path("checkpoint"), at::kFloat, 0)).rows(kDecoderBias, 0, 5);
  EXPECT_TRUE(bias.equal(TensorFiles(path("source")).rows(kDecoderBias, 0, 5)));
  EXPECT_FALSE(bias.equal(TensorFiles(path("source")).rows(kBias, 0, 5)));
  write_bert(path("tied"), "true", {kDecoderBias}, kDecoderBias);
  EXPECT_THROW(checkpoint_from_hf({path("tied"), path("refused")}, files), ConfigError);
}

TEST_P(UntiedBert, HasItsBiasUnderBothNames) {
  write_bert(path("source"), "false", {}, "");
  PosixFileSystem files;
  checkpoint_from_hf({path("source"), path("checkpoint")}, files);
  const TensorFiles back(made_directory(path("checkpoint"), at::kFloat, 0));
  EXPECT_EQ(back.tensors().size(), TensorFiles(path("source")).tensors().size() + 1);
  ASSERT_TRUE(back.tensors().contains(kDecoderBias));
  EXPECT_TRUE(back.rows(kDecoderBias, 0, 5).equal(back.rows(kBias, 0, 5)));
}

class Places : public RoundTrip {};
INSTANTIATE_TEST_SUITE_P(One, Places, testing::Values("qwen2"), [](const auto& info) { return info.param; });

TEST_P(Places, NothingIsOverwritten) {
  std::filesystem::create_directories(path("checkpoint"));
  const std::string checkpoint = made_checkpoint("qwen2");  // an empty folder is a place
  EXPECT_THROW(made_checkpoint("qwen2"), ConfigError);
  std::filesystem::create_directories(path("directory"));
  made_directory(checkpoint, at::kFloat, 0);
  EXPECT_THROW(made_directory(checkpoint, at::kFloat, 0), ConfigError);
  EXPECT_EQ(path_kind(path("directory.tmp")), PathKind::Nothing);
}

class WideRoundTrip : public ScratchFolder {};

// 24 layers of zeros in float64.
TEST_F(WideRoundTrip, OneTensorIsInMemory) {
  const std::string config = R"({"model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "n_embd": 64,
                                 "n_layer": 24, "n_head": 4})";
  std::filesystem::create_directories(path("source"));
  write(path("source/config.json"), config);
  std::vector<Problem> problems;
  std::vector<ckpt::TensorInfo> infos;
  for (const HfTensor& each : hf_tensors(model::parse_hf_config(config, "config.json", problems)))
    infos.push_back({each.name, ckpt::ElementType::F64, each.shape});
  const std::vector<ckpt::TensorEntry> entries = ckpt::laid_out(infos);
  const int64_t bytes = entries.back().end;
  write(path("source/model.safetensors"),
        ckpt::header_bytes(entries, {}) + std::string(static_cast<size_t>(bytes), '\0'));

  param::install_memory_accounting();
  param::account_memory_to(0);
  param::reset_memory_peak(0);
  const int64_t before = param::memory_use(0).peak_total_bytes;
  PosixFileSystem files;
  checkpoint_from_hf({path("source"), path("checkpoint")}, files);
  const int64_t peak = param::memory_use(0).peak_total_bytes - before, largest = 4 * 64 * 64 * 8;
  EXPECT_GE(peak, largest);
  EXPECT_LE(peak, 3 * largest) << "the tensor, and what is read of the file";
  EXPECT_GT(bytes, 60 * largest);
}

TEST(HfConfigText, HasWhatEveryModelIs) {
  ModelSpec llama = HfDirectory(hf_family_folder("llama")).model();
  const auto comes_back = [](const ModelSpec& model) {
    std::vector<Problem> problems;
    const std::string text = model::hf_config_text(model, {}, problems);
    const ModelSpec back = model::parse_hf_config(text, "config.json", problems);
    EXPECT_TRUE(problems.empty()) << ConfigError(problems).what();
    EXPECT_EQ(back, model) << text;
  };
  comes_back(llama);
  llama.head_width = 12;
  comes_back(llama);
  llama.heads = 6;  // 32 features are not divided by it
  comes_back(llama);
  llama.window = 9;
  comes_back(llama);
  llama.qkv_bias = true;
  comes_back(llama);
  llama.qkv_bias = false;
  llama.qk_norm = true;
  comes_back(llama);
  llama.qkv_bias = true;
  std::vector<Problem> problems;
  model::hf_config_text(llama, {}, problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(
      text(problems[0]),
      "model.qkv_bias = true: must be false beside model.qk_norm: no model type has both; nearest valid is false");
}

// Without a window all layers see all tokens. The class of transformers refuses to run without a number.
TEST(HfConfigText, OfGemma2HasAWindowOfTheContextWhereThereIsNone) {
  ModelSpec model = HfDirectory(hf_family_folder("gemma2")).model();
  model.window = 0;
  std::vector<Problem> problems;
  const std::string text = model::hf_config_text(model, {}, problems);
  model.window = model.context;
  EXPECT_EQ(model::parse_hf_config(text, "config.json", problems), model) << text;
}

}  // namespace
}  // namespace braid::weights::round_trip_test
