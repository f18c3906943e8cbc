// The loss on text against sums over every token's own probability, and against what training measures.
#include "braid/train/text_loss.h"

#include <ATen/ops/tensor.h>

#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/tokenize/prepare.h"
#include "braid/train/trainer.h"
#include "tests/support/saved_model.h"
#include "tests/support/scratch_folder.h"

namespace braid::train::text_loss_test {
namespace {

constexpr int kContext = 8;

class TextLossOfModel : public ScratchFolder {
 protected:
  void SetUp() override {
    spec_.data.paths = {"text"};
    spec_.model.layers = 2;
    spec_.model.heads = 2;
    spec_.model.width = 16;
    spec_.model.context = kContext;
    spec_.model.vocab = 257;
    spec_.model.init_std = 0.5;
    spec_.train.dtype = DType::Float64;
    save_fresh_weights(spec_, path("step-1"));
    write(path("a.txt"), "the quick brown fox jumps");
    write(path("b.jsonl"), "{\"text\": \"one \\u20ac\"}\n{\"text\": \"two\"}\n");
    options_.paths = {path("a.txt"), path("b.jsonl")};
  }
  std::vector<TextLoss> measured() { return measure_text_loss(path("step-1"), options_, nullptr); }

  RunSpec spec_;
  TextLossOptions options_;
};

std::vector<int64_t> bytes_and_end(const std::string& text) {
  std::vector<int64_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  tokens.push_back(256);
  return tokens;
}

// Nats of token `at`, from the tokens of [begin, at).
double nats(RankModel& model, const std::vector<int64_t>& tokens, int64_t begin, int64_t at) {
  nn::Microbatch microbatch;
  microbatch.training = false;
  microbatch.tokens_bt = at::tensor(std::vector<int64_t>(tokens.begin() + begin, tokens.begin() + at), at::kLong);
  microbatch.tokens_bt = microbatch.tokens_bt.unsqueeze(0);
  nn::Passage passage(std::move(microbatch));
  const auto scores = model.segments(0).forward(at::Tensor(), passage)[0][at - begin - 1].narrow(0, 0, 257);
  return -scores.log_softmax(0)[tokens[static_cast<size_t>(at)]].item<double>();
}

TEST_F(TextLossOfModel, IsTheSumOverTokensOfWindows) {
  std::vector<std::vector<int64_t>> texts = {bytes_and_end("the quick brown fox jumps"), bytes_and_end("one \u20ac")};
  for (const int64_t token : bytes_and_end("two")) texts[1].push_back(token);
  for (const int stride : {0, 3, 1}) {
    options_.stride = stride;
    const auto found = measured();
    ASSERT_EQ(found.size(), 2u);
    with_model(spec_, [&](RankModel& model, Communicator&) {
      for (size_t i = 0; i < 2; ++i) {
        double sum = 0;
        for (int64_t at = 1; at < static_cast<int64_t>(texts[i].size()); ++at) {
          const int64_t step = stride > 0 ? stride : kContext,
                        window = at <= kContext ? 0 : (at - kContext + step - 1) / step;
          sum += nats(model, texts[i], window * step, at);
        }
        EXPECT_NEAR(found[i].nats, sum, 1e-9) << options_.paths[i] << ", stride " << stride;
      }
    });
    EXPECT_EQ(found[0].tokens, 25);
    EXPECT_EQ(found[0].bytes, 24);  // neither the first nor the end of text
    EXPECT_EQ(found[1].bytes, 7 + 3 - 1);
    EXPECT_EQ(total(found).tokens, 25 + 11);
  }
}

TEST_F(TextLossOfModel, DoesNotDependOnTheBatch) {
  options_.stride = 2;
  const auto found = measured();
  options_.batch = 1;
  EXPECT_NEAR(measured()[0].nats, found[0].nats, 1e-10);
}

TEST_F(TextLossOfModel, DoesNotDependOnTheRanksThatShareTheModel) {
  const TextLoss alone = total(measured());
  for (const auto& [pipe, tensor] : {std::pair(2, 1), {1, 2}, {2, 2}}) {
    options_.pipe = pipe, options_.tensor = tensor;
    const TextLoss shared = total(measured());
    EXPECT_NEAR(shared.nats, alone.nats, 1e-12 * alone.nats) << pipe << " x " << tensor;
    EXPECT_EQ(shared.tokens, alone.tokens);
    EXPECT_EQ(shared.bytes, alone.bytes);
  }
}

// The windows of an evaluation are those of the text, in another order.
TEST_F(TextLossOfModel, IsWhatTrainingMeasures) {
  std::string text;
  for (int i = 0; i < 6 * kContext; ++i) text += static_cast<char>('a' + i * i % 26);
  write(path("a.txt"), text);  // with end-of-text, six windows
  options_.paths = {path("a.txt")};
  const auto tokens = std::make_shared<data::MemoryTokens>(257);
  const std::vector<int64_t> wide = bytes_and_end(text);
  tokens->add_document(std::vector<int>(wide.begin(), wide.end()));
  const data::Corpus corpus{{{tokens, 1}}, {{tokens, 1}}, 1};
  spec_.train.batch = spec_.train.microbatch = 2;
  spec_.train.eval_every = 1;
  spec_.train.eval_sequences = 6;
  double expected = 0;
  run_ranks(1, [&](Communicator& world) { expected = Trainer(spec_, corpus, world).evaluate(); });
  EXPECT_NEAR(measured()[0].per_token(), expected, 1e-12);
}

TEST_F(TextLossOfModel, PreparedDataAreMeasuredByTheirPart) {
  std::filesystem::create_directory(path("docs"));
  for (int i = 0; i < 10; ++i) write(path("docs/" + std::to_string(i)), "document number " + std::to_string(i));
  tokenize::PrepareRequest request;
  request.inputs = {path("docs")};
  request.out = path("prepared");
  request.validation_fraction = 0.3;
  request.threads = 1;
  PosixFileSystem files;
  tokenize::prepare(request, files, [](const tokenize::PrepareStatus&) {});
  options_.paths = {path("prepared")};
  const TextLoss held_out = measured()[0];
  EXPECT_EQ(held_out.path, path("prepared") + " (held out)");
  options_.half = PreparedHalf::Train;
  const TextLoss train = measured()[0];
  EXPECT_EQ(held_out.tokens + train.tokens, 10 * 18 - 2);
}

TEST_F(TextLossOfModel, AllThatIsWrongIsSaid) {
  options_.paths = {path("nothing"), path("a.txt"), path("empty")};
  write(path("empty"), "");
  try {
    measured();
    FAIL() << "it was measured";
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 2u);
    EXPECT_EQ(text(error.problems()[0]), "data.paths = " + path("nothing") + ": does not exist");
  }
  options_.paths = {path("a.txt")};
  options_.stride = 9;
  EXPECT_THROW(measured(), ConfigError);
}

}  // namespace
}  // namespace braid::train::text_loss_test
