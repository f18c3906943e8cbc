// Reads documents, makes tokens of them and counts bigrams.
#include "braid/data/text_corpus.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <span>
#include <unordered_map>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/data/document_list.h"

namespace braid {
namespace {

constexpr int kMaxVocab = 1 << 16;  // a token is 16 bits

std::string content(const Document& document) {
  std::ifstream file(document.path, std::ios::binary);
  if (!file) throw IoError(document.path, -1, std::strerror(errno));
  std::string text(static_cast<size_t>(document.bytes), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const int64_t got = file.gcount();
  if (got < document.bytes) {
    throw IoError(document.path, got, cat("ends before the ", document.bytes, " bytes it had when listed"));
  }
  if (file.peek() != std::ifstream::traits_type::eof()) {
    throw IoError(document.path, document.bytes, "has grown since it was listed");
  }
  return text;
}

void append(std::vector<uint16_t>& out, std::span<const int> tokens, const Tokenizer& tokenizer) {
  for (const int token : tokens) {
    check(token >= 0 && token < tokenizer.vocab(), "a tokenizer makes tokens of its own vocabulary");
    out.push_back(static_cast<uint16_t>(token));
  }
  out.push_back(static_cast<uint16_t>(tokenizer.end_of_text()));
}

// A single document cannot be held out whole, so its end is.
void split_single(TextCorpus& corpus, std::span<const int> tokens, const DataSpec& spec, const Tokenizer& tokenizer) {
  const auto n = static_cast<int64_t>(tokens.size());
  int64_t held = 0;
  if (spec.validation_fraction > 0 && n >= 2) {
    const auto share = static_cast<int64_t>(std::llround(spec.validation_fraction * static_cast<double>(n)));
    held = std::min(std::max<int64_t>(share, 1), n - 1);
  }
  append(corpus.train, tokens.first(static_cast<size_t>(n - held)), tokenizer);
  if (held > 0) append(corpus.validation, tokens.last(static_cast<size_t>(held)), tokenizer);
}

uint32_t pair(uint16_t first, uint16_t second) { return uint32_t{first} << 16 | second; }

}  // namespace

TextCorpus read_corpus(const DataSpec& spec, const Tokenizer& tokenizer) {
  check(tokenizer.vocab() <= kMaxVocab, "a corpus holds tokens of 16 bits");
  const auto documents = list_documents(spec);
  const auto out = held_out(documents, spec.validation_fraction);
  TextCorpus corpus;
  corpus.num_documents = static_cast<int64_t>(documents.size());
  for (size_t i = 0; i < documents.size(); ++i) {
    const auto tokens = tokenizer.encode(content(documents[i]));
    if (documents.size() == 1) {
      split_single(corpus, tokens, spec, tokenizer);
    } else {
      append(out[i] ? corpus.validation : corpus.train, tokens, tokenizer);
    }
  }
  return corpus;
}

double bigram_entropy(const TextCorpus& corpus, int vocab) {
  if (corpus.validation.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  std::unordered_map<uint32_t, int64_t> pairs;
  std::vector<int64_t> firsts(kMaxVocab, 0);
  for (size_t i = 0; i + 1 < corpus.train.size(); ++i) {
    ++pairs[pair(corpus.train[i], corpus.train[i + 1])];
    ++firsts[corpus.train[i]];
  }
  double nats = 0;
  for (size_t i = 0; i + 1 < corpus.validation.size(); ++i) {
    const uint16_t first = corpus.validation[i], second = corpus.validation[i + 1];
    const auto found = pairs.find(pair(first, second));
    const auto count = static_cast<double>(found == pairs.end() ? 0 : found->second);
    nats -= std::log((count + 1) / (static_cast<double>(firsts[first]) + vocab));
  }
  return nats / static_cast<double>(corpus.validation.size() - 1);
}

}  // namespace braid
