// Training of byte-level BPE: the first tokens, and the pieces as their bytes.
#include "braid/tokenize/bpe_trainer.h"

#include <algorithm>
#include <array>

#include "braid/base/errors.h"
#include "braid/tokenize/byte_alphabet.h"
#include "braid/tokenize/merge_learner.h"

namespace braid::tokenize {
namespace {

// Returns the bytes in the order of their symbols.
std::array<unsigned char, 256> ordered_bytes() {
  std::array<unsigned char, 256> bytes{};
  for (int byte = 0; byte < 256; ++byte) bytes[byte] = static_cast<unsigned char>(byte);
  std::sort(bytes.begin(), bytes.end(),
            [](unsigned char a, unsigned char b) { return byte_symbol(a) < byte_symbol(b); });
  return bytes;
}

}  // namespace

BpeModel train_bpe(const BpeTraining& training, const PieceCounts& counts, const std::function<void(int)>& progress) {
  check(training.vocab >= 257, "a vocabulary of end-of-text and 256 bytes at least");
  std::vector<std::string> first_tokens{training.end_of_text};
  std::array<uint32_t, 256> token_of_byte{};
  for (const unsigned char byte : ordered_bytes()) {
    token_of_byte[byte] = static_cast<uint32_t>(first_tokens.size());
    first_tokens.emplace_back(1, static_cast<char>(byte));
  }
  MergeLearner learner({static_cast<size_t>(training.vocab), training.min_frequency, ""}, first_tokens);
  std::vector<uint32_t> word;
  for (const auto& [piece, count] : counts.table()) {
    word.clear();
    for (const char byte : piece) word.push_back(token_of_byte[static_cast<unsigned char>(byte)]);
    learner.add_word(word, count);
  }
  LearnedMerges learned = learner.learn(progress);
  BpeModel model;
  model.pretokenizer.regexes = {pattern_regex(training.pattern)};
  model.merges = std::move(learned.merges);
  for (std::string& token : learned.tokens) model.tokens.push_back({std::move(token), TokenKind::Text});
  model.tokens[0].kind = TokenKind::Special;
  return model;
}

}  // namespace braid::tokenize
