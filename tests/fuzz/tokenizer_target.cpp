// A tokenizer.json of BPE or WordPiece, and that what is accepted makes tokens of its vocabulary out of any text, and
// text of them.
#include <algorithm>

#include "braid/base/errors.h"
#include "braid/tokenize/pretokenizer.h"
#include "braid/tokenize/tokenizer.h"
#include "braid/tokenize/tokenizer_file.h"
#include "braid/tokenize/wordpiece_file.h"
#include "braid/tokenize/wordpiece_trainer.h"
#include "tests/fuzz/target.h"

namespace braid::fuzz {

using namespace tokenize;

namespace {

void run_tokenizer(const std::string& input) {
  const auto tokenizer = make_tokenizer(as_file(input));
  for (const std::string text :
       {"Hello  world, it's 12345 \xc3\xa9t\xc3\xa9\n\n", "\xff\xfe\x80 a\0b<|endoftext|>", "  "}) {
    const std::vector<int> tokens = tokenizer->encode(text);
    const bool known =
        std::all_of(tokens.begin(), tokens.end(), [&](int token) { return token >= 0 && token < tokenizer->vocab(); });
    check(known, "tokens are of the vocabulary");
    tokenizer->decode(tokens);
  }
}

// Special tokens, a character, two words and a continuation.
std::string wordpiece_seed() {
  WordPieceModel model;
  for (const auto& token : WordPieceTraining::bert_special_tokens())
    model.tokens.push_back({token, TokenKind::Special});
  for (const char* token : {"e", "hel", "it", "##lo"}) model.tokens.push_back({token, TokenKind::Text, true});
  model.unknown = 1;
  model.end_of_text = 3;
  return wordpiece_json(model);
}

// BPE: all single bytes, two merges and an end-of-text. WordPiece: the seed above.
std::vector<std::string> tokenizer_seeds() {
  BpeModel model;
  for (int byte = 0; byte < 256; ++byte)
    model.tokens.push_back({std::string(1, static_cast<char>(byte)), TokenKind::Text});
  model.tokens.push_back({"he", TokenKind::Text});
  model.tokens.push_back({"hel", TokenKind::Text});
  model.tokens.push_back({"<|endoftext|>", TokenKind::Special});
  model.merges = {{'h', 'e', 256}, {256, 'l', 257}};
  model.end_of_text = 258;
  std::vector<std::string> seeds;
  for (const std::string& name : pattern_names()) {
    model.pretokenizer.regexes = {pattern_regex(name)};
    seeds.push_back(tokenizer_json(model));
  }
  seeds.push_back(wordpiece_seed());
  return seeds;
}

}  // namespace

Target tokenizer_target() {
  return {"tokenizer",
          run_tokenizer,
          tokenizer_seeds,
          {"\"type\": \"ByteLevel\"",
           "\"type\": \"Split\"",
           "\"type\": \"Sequence\"",
           "\"pattern\": {\"Regex\": \"",
           "\"String\": \"",
           "\"behavior\": \"Isolated\"",
           "\"invert\": true",
           "\"add_prefix_space\": true",
           "\"use_regex\": false",
           "\"normalizer\": {\"type\": \"NFC\"}",
           "\"byte_fallback\": true",
           "\"unk_token\": \"",
           "\"ignore_merges\": true",
           "\"type\": \"WordPiece\"",
           "\"type\": \"BertNormalizer\"",
           "\"type\": \"BertPreTokenizer\"",
           "\"strip_accents\": null",
           "\"clean_text\": false",
           "\"normalized\": true",
           "\"continuing_subword_prefix\": \"",
           "\"max_input_chars_per_word\": 0",
           "\"cleanup\": true",
           "\"merges\": [",
           "\"vocab\": {",
           "\"added_tokens\": [",
           "\"id\": ",
           "\"content\": \"",
           "\"special\": true",
           "\"lstrip\": true",
           "\"pretokenizers\": [",
           "\"decoder\": ",
           "(?i:",
           "\\\\p{L}+",
           "(a+)+$",
           "(?!\\\\S)",
           "{1,3}",
           "null",
           "{",
           "}",
           "[",
           "]",
           ","}};
}

}  // namespace braid::fuzz
