// Several texts from one model: each is what it would be alone and on any ranks, and what a forward over its whole
// window gives, past the context too. Fresh weights with large values, so that no two scores are nearly equal.
#include <ATen/ops/tensor.h>

#include <map>

#include "braid/base/errors.h"
#include "braid/train/generate.h"
#include "tests/support/saved_model.h"
#include "tests/support/scratch_folder.h"

namespace braid::train::generate_all_test {
namespace {

const std::vector<std::string> kPrompts = {"a", "some words of a prompt", "", "0123456789012345678901234567890123",
                                           "b"};

class GenerateAll : public ScratchFolder {
 protected:
  void SetUp() override {
    spec_.data.paths = {"text"};
    spec_.model.layers = 2;
    spec_.model.heads = 4;
    spec_.model.width = 32;
    spec_.model.context = 24;
    spec_.model.vocab = 257;
    spec_.model.init_std = 0.4;
    options_.num_tokens = 60;
    options_.temperature = 0;
    options_.batch = 3;
  }
  Generation made(const std::vector<std::string>& prompts, const GenerationListener& listener = {}) {
    if (!std::filesystem::exists(path("step-1"))) save_fresh_weights(spec_, path("step-1"));
    return generate_all(path("step-1"), prompts, options_, listener);
  }
  void make_llama(OutputWeights output) {
    spec_.model.family = ModelFamily::Llama;
    spec_.model.kv_heads = 2;
    spec_.model.output_weights = output;
    spec_.model.rope_scaling = RopeScaling::Llama3;
    spec_.model.rope_context = 16;
  }

  RunSpec spec_;
  GenerateOptions options_;
};

// The likeliest tokens, each by a forward over the window that generate.h describes.
std::vector<int> by_windows(RankModel& model, const ModelSpec& spec, const std::string& prompt, int num_tokens) {
  std::vector<int64_t> window;
  for (const char c : prompt) window.push_back(static_cast<unsigned char>(c));
  if (window.empty()) window.push_back(256);
  const auto keep_last = [&](size_t count) {
    if (window.size() > count) window.erase(window.begin(), window.end() - static_cast<int64_t>(count));
  };
  keep_last(static_cast<size_t>(spec.context));
  std::vector<int> tokens;
  while (static_cast<int>(tokens.size()) < num_tokens) {
    nn::Microbatch microbatch;
    microbatch.training = false;
    microbatch.tokens_bt = at::tensor(window, at::kLong).unsqueeze(0);
    nn::Passage passage(std::move(microbatch));
    const auto scores = model.segments(0).forward(at::Tensor(), passage)[0][static_cast<int64_t>(window.size()) - 1];
    const auto token = scores.narrow(0, 0, spec.vocab).argmax().item<int64_t>();
    if (token == 256) break;
    tokens.push_back(static_cast<int>(token));
    window.push_back(token);
    if (static_cast<int>(window.size()) > spec.context) keep_last(static_cast<size_t>(std::max(1, spec.context / 2)));
  }
  return tokens;
}

// The byte tokenizer has 257 tokens. Fresh weights make each of the other ids as likely as a token.
TEST_F(GenerateAll, UnusedIdsOfAPaddedVocabularyAreNeverChosen) {
  spec_.model.vocab = 400;
  const auto made_with = [&](double temperature, int top_k, double top_p) {
    options_.temperature = temperature, options_.top_k = top_k, options_.top_p = top_p;
    std::vector<std::vector<int>> tokens;
    for (const GeneratedText& text : made(kPrompts).texts) {
      tokens.push_back(text.tokens);
      for (const int token : text.tokens) EXPECT_LT(token, 256);
    }
    return tokens;
  };
  const auto greedy = made_with(0, 0, 1);
  with_model(spec_, [&](RankModel& model, Communicator&) {
    ModelSpec used = spec_.model;
    used.vocab = 257;
    for (size_t p = 0; p < kPrompts.size(); ++p) {
      EXPECT_EQ(greedy[p], by_windows(model, used, kPrompts[p], options_.num_tokens)) << kPrompts[p];
    }
  });
  EXPECT_EQ(made_with(0.8, 1, 1), greedy);
  EXPECT_EQ(made_with(0.8, 0, 1e-12), greedy);
  EXPECT_EQ(made_with(1e-9, 0, 1), greedy);
  size_t num_tokens = 0;
  for (const auto& tokens : made_with(5, 0, 1)) num_tokens += tokens.size();
  EXPECT_GT(num_tokens, 150u);  // a third of the ids is unused: a text would end after three
}

TEST_F(GenerateAll, LikeliestTokensAreThoseOfForwardsOverTheWholeWindow) {
  for (const DType dtype : {DType::Float64, DType::Float32}) {
    for (const int family : {0, 1, 2}) {
      spec_.train.dtype = dtype;
      if (family > 0) make_llama(family == 1 ? OutputWeights::Tied : OutputWeights::Untied);
      std::filesystem::remove_all(path("step-1"));
      const Generation all = made(kPrompts);
      with_model(spec_, [&](RankModel& model, Communicator&) {
        for (size_t i = 0; i < kPrompts.size(); ++i) {
          const GeneratedText& text = all.texts.at(i);
          EXPECT_EQ(text.prompt, static_cast<int>(i));
          EXPECT_EQ(text.tokens, by_windows(model, spec_.model, kPrompts[i], options_.num_tokens))
              << dtype << " " << spec_.model.family << ", prompt " << i;
          EXPECT_EQ(text.end == TextEnd::Length, text.tokens.size() == 60u);
        }
      });
      spec_.model.family = ModelFamily::Gpt2;
      spec_.model.kv_heads = 0;
      spec_.model.rope_scaling = RopeScaling::None;
      spec_.model.output_weights = OutputWeights::Tied;
    }
  }
}

// In float64: prompts are read together, so other types differ by rounding. Temperature 5, so that texts differ.
TEST_F(GenerateAll, ATextDependsOnItsNumberAndPromptAlone) {
  spec_.train.dtype = DType::Float64;
  options_.temperature = 5;
  options_.num_samples = 2;
  const Generation all = made(kPrompts);
  ASSERT_EQ(all.texts.size(), 10u);
  EXPECT_NE(all.texts[0].text, all.texts[1].text);
  for (const int batch : {1, 2, 10}) {
    options_.batch = batch;
    const Generation again = made(kPrompts);
    for (size_t i = 0; i < all.texts.size(); ++i) {
      EXPECT_EQ(again.texts[i].tokens, all.texts[i].tokens) << batch << " at once, text " << i;
    }
  }
  auto others = kPrompts;
  others[0] = "something else";
  EXPECT_EQ(made(others).texts[4].tokens, all.texts[4].tokens);
  GenerateOptions single = options_;
  single.prompt = kPrompts[0];
  EXPECT_EQ(generate(path("step-1"), single, nullptr), all.texts[0].text);
}

TEST_F(GenerateAll, RanksThatShareTheModelGiveTheSameTexts) {
  spec_.train.dtype = DType::Float64;
  spec_.model.heads = 8;
  for (const int family : {0, 1, 2}) {
    if (family > 0) make_llama(family == 1 ? OutputWeights::Tied : OutputWeights::Untied);
    if (family > 0) spec_.model.kv_heads = 4;  // each has two query heads
    std::filesystem::remove_all(path("step-1"));
    options_.pipe = options_.tensor = 1;
    const Generation alone = made(kPrompts);
    for (const auto& [pipe, tensor] : {std::pair(2, 1), {1, 2}, {1, 4}, {2, 2}}) {
      options_.pipe = pipe, options_.tensor = tensor;
      int ended = 0;
      const Generation shared = made(kPrompts, {nullptr, [&](const GeneratedText&) { ++ended; }});
      EXPECT_EQ(ended, std::ssize(kPrompts));  // rank 0 alone reports them
      for (size_t i = 0; i < kPrompts.size(); ++i) {
        EXPECT_EQ(shared.texts.at(i).tokens, alone.texts.at(i).tokens)
            << "family " << family << ", " << pipe << " x " << tensor << ", prompt " << i;
      }
    }
  }
}

TEST_F(GenerateAll, AnErrorOfTheListenerEndsAllRanks) {
  options_.pipe = options_.tensor = 2;
  const auto fail = [](const GeneratedText&) { throw IoError("the listener", -1, "is full"); };
  EXPECT_THROW(made(kPrompts, {nullptr, fail}), IoError);
}

TEST_F(GenerateAll, RanksThatAModelCannotBeSplitOverAreRefused) {
  const auto keys = [&](int pipe, int tensor) {
    options_.pipe = pipe, options_.tensor = tensor;
    std::vector<std::string> found;
    try {
      made(kPrompts);
    } catch (const ConfigError& error) {
      for (const Problem& problem : error.problems()) found.push_back(problem.key);
    }
    return found;
  };
  EXPECT_EQ(keys(1, 3), std::vector<std::string>{"mesh.tensor"});  // of 4 heads
  EXPECT_EQ(keys(9, 1), std::vector<std::string>{"mesh.pipe"});    // of 2 layers, 6 units
  EXPECT_EQ(keys(2, 2), std::vector<std::string>{});
}

TEST_F(GenerateAll, TextsAreToldAsTheyEnd) {
  std::map<int, GeneratedText> told;
  const Generation all = made(kPrompts, {nullptr, [&](const GeneratedText& text) { told[text.prompt] = text; }});
  ASSERT_EQ(told.size(), kPrompts.size());
  for (const GeneratedText& text : all.texts) {
    EXPECT_EQ(told[text.prompt].text, text.text);
    EXPECT_LT(told[text.prompt].log_probability, 0);
  }
  EXPECT_GT(all.speed.prompt_tokens, 60);  // some windows were read anew
  EXPECT_GT(all.speed.new_tokens, 100);
}

TEST_F(GenerateAll, AStopWordEndsItsText) {
  options_.temperature = 5;
  const Generation free = made({"a"});
  const std::string word = free.texts[0].text.substr(7, 3);  // over several tokens, which are bytes
  options_.stops = {"never to be seen", word};
  std::string pieces;
  const Generation stopped = made({"a"}, {[&](const std::string& piece) { pieces += piece; }, nullptr});
  const GeneratedText& text = stopped.texts[0];
  EXPECT_EQ(text.text, free.texts[0].text.substr(0, free.texts[0].text.find(word)));
  EXPECT_EQ(text.end, TextEnd::Stop);
  EXPECT_EQ(text.tokens.size(), text.text.size() + word.size());
  EXPECT_EQ(pieces, text.text);
}

TEST_F(GenerateAll, AContextOfOneTokenIsEnough) {
  spec_.model.context = 1;
  options_.num_tokens = 5;
  const Generation all = made({"abc"});
  with_model(spec_, [&](RankModel& model, Communicator&) {
    EXPECT_EQ(all.texts[0].tokens, by_windows(model, spec_.model, "abc", 5));
  });
}

TEST_F(GenerateAll, AnotherTypeComputesTheSameWeights) {
  options_.num_tokens = 4;
  const Generation wide = made({"some words"});
  options_.dtype = DType::BFloat16;
  EXPECT_EQ(made({"some words"}).texts[0].tokens.size(), wide.texts[0].tokens.size());
}

}  // namespace
}  // namespace braid::train::generate_all_test
