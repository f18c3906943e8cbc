// The [data] section: which text, cut how.
#pragma once

#include <string>
#include <vector>

#include "braid/spec/word.h"

namespace braid {

// Document: tokens do not see other documents of their sequence.
enum class AttentionMask { Causal, Document };
constexpr auto words(AttentionMask) { return std::to_array<std::string_view>({"causal", "document"}); }

// The tokenizer that has no files: a token for each byte.
inline constexpr const char* kByteTokenizer = "bytes";

struct DataSpec {
  std::vector<std::string> paths;          // files, or folders searched recursively
  std::vector<std::string> include = {};   // file name patterns inside folders, "*.py"; empty: all
  std::string tokenizer = kByteTokenizer;  // or a tokenizer.json, or a folder with it or with vocab.json + merges.txt
  std::vector<double> weights = {};        // share of samples from each path; empty: by size. Prepared data only
  AttentionMask attention = AttentionMask::Causal;
  double validation_fraction = 0.05;  // share of the documents' bytes held out

  bool operator==(const DataSpec&) const = default;
};

}  // namespace braid
