// The map from spellings to ids. A repeated fault is reported once, with its first cases.
#include "braid/tokenize/bpe_vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "braid/base/text.h"
#include "braid/tokenize/byte_alphabet.h"

namespace braid::tokenize {

namespace {

// Returns the byte that a name stands for, 10 for "<0x0A>"; -1 if the name stands for no byte.
int byte_of_name(const std::string& name) {
  if (name.size() != 6 || !name.starts_with("<0x") || name[5] != '>') return -1;
  int byte = 0;
  for (const char c : name.substr(3, 2)) {
    const bool digit = '0' <= c && c <= '9', letter = 'A' <= c && c <= 'F';
    if (!digit && !letter) return -1;
    byte = 16 * byte + (digit ? c - '0' : c - 'A' + 10);
  }
  return byte;
}

// Returns true for a token that is only a name and stands for no text. fairseq pads vocabularies with
// "madeupword0000", ...
bool is_name(const std::string& bytes) {
  const auto lies_in = [&](char open, char close) { return bytes.front() == open && bytes.back() == close; };
  return lies_in('<', '>') || lies_in('[', ']') || bytes.starts_with("madeupword");
}

}  // namespace

void BpeVocabulary::add_tokens(const nlohmann::json& vocab, const std::string& where) {
  if (!vocab.is_object()) return faults_.add(where, "must be an object of tokens and ids");
  id_of_.reserve(vocab.size());
  ids_.set_num_listed(static_cast<int64_t>(vocab.size()));
  for (const auto& [name, id] : vocab.items()) {
    if (!id.is_number_integer()) {
      ids_.refuse(name);
      continue;
    }
    if (!ids_.take(id.get<int64_t>(), name)) continue;
    const auto number = id.get<uint32_t>();
    set_token(number, token_of(name));
    id_of_.emplace(name, number);
  }
}

BpeToken BpeVocabulary::token_of(const std::string& name) const {
  if (spelling_ == Spelling::Plain) {
    const int byte = byte_of_name(name);
    return byte < 0 ? BpeToken{name, TokenKind::Text}
                    : BpeToken{std::string(1, static_cast<char>(byte)), TokenKind::Byte};
  }
  // A token outside the byte alphabet is a name, such as "<|end of text|>". No piece ever matches it.
  auto bytes = symbol_bytes(name);
  return {bytes ? std::move(*bytes) : name, bytes ? TokenKind::Text : TokenKind::Special};
}

void BpeVocabulary::set_token(uint32_t id, BpeToken token) {
  if (id >= model_.tokens.size()) model_.tokens.resize(id + 1);
  model_.tokens[id] = std::move(token);
}

void BpeVocabulary::add_added(const std::string& content, int64_t id, TokenKind kind) {
  const auto known = id_of_.find(content);
  const bool repeats = known != id_of_.end() && known->second == id;
  if (!repeats && !ids_.take(id, content)) return;
  set_token(static_cast<uint32_t>(id), {content, kind});
}

void BpeVocabulary::add_merge(const std::string& merge, const std::string& place) {
  const size_t space = merge.find(' ');
  if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos) {
    bad_merges_.push_back(cat(place, '"', merge, '"'));
    return;
  }
  add_merge_of(merge.substr(0, space), merge.substr(space + 1), place);
}

void BpeVocabulary::add_merge_of(const std::string& left, const std::string& right, const std::string& place) {
  const auto left_id = id_of_.find(left), right_id = id_of_.find(right), result = id_of_.find(left + right);
  if (left_id == id_of_.end() || right_id == id_of_.end() || result == id_of_.end()) {
    bad_merges_.push_back(cat(place, '"', left, ' ', right, '"'));
    return;
  }
  if (!merged_pairs_.insert(pair_of(left_id->second, right_id->second)).second) {
    equal_merges_.push_back(cat(place, '"', left, ' ', right, '"'));
    return;
  }
  model_.merges.push_back({left_id->second, right_id->second, result->second});
}

BpeModel BpeVocabulary::finish(WholePieces whole_pieces) {
  ids_.add_faults(faults_);
  if (!bad_merges_.empty()) {
    faults_.add("merges", cat("both sides and the result must be tokens; not so ", first_few(bad_merges_)));
  }
  if (!equal_merges_.empty()) {
    faults_.add("merges", cat("each must be listed once; listed before are ", first_few(equal_merges_)));
  }
  find_bytes_without_token();
  // No merge forms the single characters of a plain spelling, and a converted vocabulary may hold its author's symbols.
  const bool all_are_made = spelling_ == Spelling::ByteAlphabet && whole_pieces == WholePieces::Merge;
  if (!faults_.any() && all_are_made) find_tokens_without_merge();
  model_.whole_pieces = whole_pieces;
  return std::move(model_);
}

void BpeVocabulary::find_bytes_without_token() {
  std::vector<bool> known(256);
  for (const auto& token : model_.tokens) {
    const bool is_byte = spelling_ == Spelling::Plain ? token.kind == TokenKind::Byte : stands_for_byte(token);
    if (is_byte) known[static_cast<unsigned char>(token.bytes[0])] = true;
  }
  std::vector<std::string> missing;
  for (int byte = 0; byte < 256; ++byte) {
    if (!known[byte]) missing.push_back(std::to_string(byte));
  }
  if (!missing.empty())
    faults_.add("vocabulary", cat("must have a token for every byte (byte level); missing ", first_few(missing)));
}

void BpeVocabulary::find_tokens_without_merge() {
  std::vector<bool> made(model_.tokens.size());
  for (const BpeMerge& merge : model_.merges) made[merge.result] = true;
  std::vector<std::string> missing;
  for (size_t id = 0; id < model_.tokens.size(); ++id) {
    const auto& [bytes, kind] = model_.tokens[id];
    if (kind == TokenKind::Text && bytes.size() > 1 && !made[id] && !is_name(bytes)) {
      missing.push_back(byte_symbols(bytes));
    }
  }
  if (missing.empty()) return;
  faults_.add("merges", cat("must make every token of the vocabulary, or they are cut short or another's; none makes ",
                            first_few(missing)));
}

}  // namespace braid::tokenize
