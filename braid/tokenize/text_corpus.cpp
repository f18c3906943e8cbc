// Reads documents and encodes them as a corpus.
#include "braid/tokenize/text_corpus.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "braid/base/checked_file.h"
#include "braid/base/digest.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/tokenize/document_reader.h"

namespace braid::tokenize {

std::string content(const Document& document) {
  const CheckedFile file(document.path, Links::Followed);
  if (file.bytes() != document.bytes) {
    throw IoError(document.path, std::min(file.bytes(), document.bytes),
                  cat("has ", counted(file.bytes(), "byte"), "; it had ", document.bytes, " when it was listed"));
  }
  return file.content(document.bytes);
}

int64_t held_out_end(int64_t num_tokens, double fraction) {
  if (fraction <= 0 || num_tokens < 2) return 0;
  const auto share = static_cast<int64_t>(std::llround(fraction * static_cast<double>(num_tokens)));
  return std::min(std::max<int64_t>(share, 1), num_tokens - 1);
}

data::Corpus read_text(const DataSpec& spec, const Tokenizer& tokenizer) {
  const auto [files, passed_over] = list_documents(spec);
  DocumentReader reader(files, {.validation_fraction = spec.validation_fraction});
  const auto train = std::make_shared<data::MemoryTokens>(tokenizer.vocab());
  const auto validation = std::make_shared<data::MemoryTokens>(tokenizer.vocab());
  ContentMark read{"text"};
  Digest digest(DigestKind::Xxh64);
  while (const auto document = reader.next()) {
    ++read.documents;
    read.bytes += static_cast<int64_t>(document->text.size());
    add_sized(digest, document->text);
    const auto tokens = tokenizer.encode(document->text);
    int64_t held = document->side == Side::Train ? 0 : static_cast<int64_t>(tokens.size());
    if (document->side == Side::SplitEnd) held = held_out_end(held, spec.validation_fraction);
    const auto kept = tokens.size() - static_cast<size_t>(held);
    if (kept > 0) train->add_document(std::span(tokens).first(kept), tokenizer.end_of_text());
    if (held > 0) validation->add_document(std::span(tokens).last(static_cast<size_t>(held)), tokenizer.end_of_text());
  }
  data::Corpus corpus{{{train, 1}}, {}, read.documents};
  if (validation->num_tokens() > 0) corpus.validation = {{validation, 1}};
  read.digest = digest.named();
  corpus.origin.sources = {read};
  if (const std::string told = sentence(passed_over); !told.empty()) corpus.choices = {"what is text; " + told};
  return corpus;
}

}  // namespace braid::tokenize
