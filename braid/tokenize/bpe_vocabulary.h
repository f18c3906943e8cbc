// A vocabulary and its merges, read in the spelling of files, checked and converted to ids.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "braid/tokenize/bpe_tokenizer.h"
#include "braid/tokenize/faults.h"
#include "braid/tokenize/token_ids.h"

namespace braid::tokenize {

// The spelling of tokens in a file.
enum class Spelling {
  ByteAlphabet,  // each byte is written as a character (byte_alphabet.h)
  Plain,         // tokens are plain text; bytes are "<0x0A>"
};

class BpeVocabulary {
 public:
  // REQUIRES: `faults` outlives this.
  explicit BpeVocabulary(Faults& faults, Spelling spelling = Spelling::ByteAlphabet)
      : faults_(faults), spelling_(spelling) {}

  // Adds the tokens of an object {"token": id, ...}, in the file's spelling. `where` names the object in messages.
  void add_tokens(const nlohmann::json& vocab, const std::string& where);
  // Adds a token that is given as text, not as byte symbols. It may repeat a token of the vocabulary with the same id.
  void add_added(const std::string& content, int64_t id, TokenKind kind);
  // Adds a merge "left right" in the file's spelling. Messages begin with `place`. Adding a merge twice is a fault.
  void add_merge(const std::string& merge, const std::string& place = "");
  void add_merge_of(const std::string& left, const std::string& right, const std::string& place = "");
  // Returns the tokens and merges. Adds faults for merges of unknown tokens and for bytes without a token. Where pieces
  // are always merged, also adds faults for tokens that no merge makes: then the list of merges was cut short or
  // belongs to another vocabulary. Names such as "<pad>", which no merge makes, are not faults.
  BpeModel finish(WholePieces whole_pieces);

 private:
  void find_bytes_without_token();
  void find_tokens_without_merge();

  BpeToken token_of(const std::string& name) const;
  void set_token(uint32_t id, BpeToken token);

  Faults& faults_;
  Spelling spelling_;
  std::unordered_map<std::string, uint32_t> id_of_;  // key: the file's spelling
  BpeModel model_;
  TokenIds ids_;
  std::unordered_set<uint64_t> merged_pairs_;
  std::vector<std::string> bad_merges_, equal_merges_;
};

}  // namespace braid::tokenize
