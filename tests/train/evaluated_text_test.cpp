// Bytes per token of what evaluations measure on, against a count by hand.
#include "braid/train/evaluated_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tests/train/layout_run.h"

namespace braid::train::evaluated_text_test {
namespace {

// Token t stands for t bytes, but for the last, which ends documents.
constexpr int kEnd = 5;
const std::vector<int> kBytes = {0, 1, 2, 3, 4, 0};

RunSpec spec_of(int context, int eval_sequences) {
  RunSpec spec = tiny_spec(2, 2);
  spec.model.context = context;
  spec.train.eval_sequences = eval_sequences;
  return spec;
}

data::Blend held_out(const std::vector<int>& tokens) {
  auto source = std::make_shared<data::MemoryTokens>(kEnd + 1);
  source->add_document(tokens);
  return {{source, 1}};
}

TEST(EvaluatedText, CountsWhatIsPredictedAndEndsOfDocumentsAsNoBytes) {
  // Two windows of three: 1 4 E and 2 2 3 are predicted, 0 at the front is not. Two sequences are both of them.
  const data::Blend validation = held_out({0, 1, 4, kEnd, 2, 2, 3});
  const RunSpec spec = spec_of(3, 2);
  EXPECT_DOUBLE_EQ(EvaluatedText(spec, validation, kBytes).bytes_per_token(), (1 + 4 + 0 + 2 + 2 + 3) / 6.0);
}

// Every window once, then each again: as evaluations do.
TEST(EvaluatedText, CountsASampleAsOftenAsItIsMeasuredOn) {
  const data::Blend validation = held_out({0, 1, 4, kEnd, 2, 2, 3});
  const RunSpec once = spec_of(3, 2), twice = spec_of(3, 4);
  EvaluatedText text(twice, validation, kBytes);
  EXPECT_DOUBLE_EQ(text.bytes_per_token(), EvaluatedText(once, validation, kBytes).bytes_per_token());
  EXPECT_DOUBLE_EQ(text.bytes_per_token(), text.bytes_per_token());
}

TEST(EvaluatedText, WithoutTextThereIsNoNumber) {
  const data::Blend validation = held_out({kEnd, kEnd, kEnd});
  const RunSpec spec = spec_of(2, 2);
  EXPECT_TRUE(std::isnan(EvaluatedText(spec, validation, kBytes).bytes_per_token()));
}

}  // namespace
}  // namespace braid::train::evaluated_text_test
