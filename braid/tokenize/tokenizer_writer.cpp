// The writer of tokenizer.json: fixed text around the vocabulary and the merges.
#include <nlohmann/json.hpp>
#include <sstream>

#include "braid/base/errors.h"
#include "braid/tokenize/byte_alphabet.h"
#include "braid/tokenize/pattern_scanner.h"
#include "braid/tokenize/tokenizer_file.h"

namespace braid::tokenize {
namespace {

std::string json_string(const std::string& text) { return nlohmann::json(text).dump(); }

void write_added(std::ostream& out, const BpeModel& model) {
  const char* separator = "";
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    const BpeToken& token = model.tokens[id];
    check(token.kind == TokenKind::Text || token.kind == TokenKind::Special, "tokens of text and special ones");
    if (token.kind != TokenKind::Special) continue;
    out << separator << "\n  {\"id\": " << id << ", \"content\": " << json_string(token.bytes)
        << R"(, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})";
    separator = ",";
  }
}

void write_pretokenizer(std::ostream& out, const std::string& regex) {
  constexpr const char* kByteLevel =
      R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": )";
  if (regex == kGpt2Regex) {
    out << kByteLevel << "true}";
    return;
  }
  out << R"({"type": "Sequence", "pretokenizers": [)"
      << R"({"type": "Split", "pattern": {"Regex": )" << json_string(regex)
      << R"(}, "behavior": "Isolated", "invert": false}, )" << kByteLevel << "false}]}";
}

void write_model(std::ostream& out, const BpeModel& model) {
  out << R"({"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,)"
      << R"( "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": )"
      << (model.whole_pieces == WholePieces::Lookup ? "true" : "false") << ",\n \"vocab\": {";
  const auto name = [&](uint32_t id) {
    const BpeToken& token = model.tokens[id];
    return json_string(token.kind == TokenKind::Special ? token.bytes : byte_symbols(token.bytes));
  };
  for (uint32_t id = 0; id < model.tokens.size(); ++id)
    out << (id > 0 ? ",\n" : "\n") << "  " << name(id) << ": " << id;
  out << "\n },\n \"merges\": [";
  const char* separator = "\n";
  for (const BpeMerge& merge : model.merges) {
    out << separator << "  [" << name(merge.left) << ", " << name(merge.right) << "]";
    separator = ",\n";
  }
  out << "\n ]}";
}

}  // namespace

std::string tokenizer_json(const BpeModel& model) {
  check(model.pretokenizer.regexes.size() == 1 && pattern_scanner(model.pretokenizer.regexes[0]), "one known pattern");
  const char* const normalizer = model.normalizer == Normalizer::FormC ? R"({"type": "NFC"})" : "null";
  std::ostringstream out;
  out << "{\n\"version\": \"1.0\",\n\"truncation\": null,\n\"padding\": null,\n\"added_tokens\": [";
  write_added(out, model);
  out << "\n],\n\"normalizer\": " << normalizer << ",\n\"pre_tokenizer\": ";
  write_pretokenizer(out, model.pretokenizer.regexes[0]);
  out << ",\n\"post_processor\": null,\n\"decoder\": "
      << R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true})"
      << ",\n\"model\": ";
  write_model(out, model);
  out << "\n}\n";
  return std::move(out).str();
}

}  // namespace braid::tokenize
