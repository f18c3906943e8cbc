// The [data] section: the text, its tokenizer, and the attention between its documents.
#pragma once

#include <string>
#include <vector>

#include "braid/base/word.h"

namespace braid {

// Document: a token does not attend to other documents of its sequence.
enum class AttentionMask { Causal, Document };
constexpr auto words(AttentionMask) { return std::to_array<std::string_view>({"causal", "document"}); }

// The tokenizer that needs no files: each byte is a token.
inline constexpr const char* kByteTokenizer = "bytes";

struct DataSpec {
  std::vector<std::string> paths;          // files, or folders searched recursively
  std::vector<std::string> include = {};   // file name patterns inside folders, "*.py"; empty: all
  std::string tokenizer = kByteTokenizer;  // or a tokenizer.json, or a folder with that or with vocab.json + merges.txt
  std::vector<double> weights = {};        // fraction of samples from each path; empty: by size. Prepared data only
  AttentionMask attention = AttentionMask::Causal;
  double validation_fraction = 0.05;  // fraction of the documents' bytes held out

  bool operator==(const DataSpec&) const = default;
};

}  // namespace braid
