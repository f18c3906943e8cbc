// Results of the reference tokenizer on texts that are hard to split (tools/reference/tokenizer.py).
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "braid/tokenize/tokenizer_file.h"

namespace braid {

inline std::string data_file(const std::string& name) { return BRAID_SOURCE_DIR "/tests/tokenize/data/" + name; }

inline const nlohmann::json& bpe_golden() {
  static const auto golden = nlohmann::json::parse(std::ifstream(data_file("bpe_golden.json")));
  return golden;
}

inline std::vector<std::string> hard_texts() { return bpe_golden().at("texts").get<std::vector<std::string>>(); }

// Every byte, in runs of text and between: what no text in a JSON file can be.
inline std::string not_utf8() {
  std::string text = "caf\xC3\xA9 \xC3( \xE2\x82 \xF0\x9F\x98 \xED\xA0\x80 \xC0\xAF \xF5\x80 \xF4\x90\x80\x80 ";
  for (int byte = 255; byte >= 0; --byte) text += {static_cast<char>(byte), 'a', ' ', static_cast<char>(byte), '\xE4'};
  return text + "\xE6\xBC";
}

// The committed model with another pattern.
inline tokenize::BpeModel small_model(const std::string& pattern = "gpt2",
                                      tokenize::WholePieces whole_pieces = tokenize::WholePieces::Merge) {
  tokenize::BpeModel model = tokenize::read_bpe(data_file("bpe.json"));
  model.pretokenizer.regexes = {tokenize::pattern_regex(pattern)};
  model.whole_pieces = whole_pieces;
  return model;
}

}  // namespace braid
