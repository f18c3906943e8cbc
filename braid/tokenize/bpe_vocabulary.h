// A vocabulary and its merges as files spell them, checked and turned into ids.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "braid/base/errors.h"
#include "braid/tokenize/bpe_tokenizer.h"

namespace braid::tokenize {

// Words that are one token wherever they stand in a text.
struct AddedToken {
  std::string content;  // not empty
  uint32_t token = 0;
};

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> added);

  struct Found {
    size_t begin = 0;
    size_t end = 0;
    uint32_t token = 0;
  };
  // The leftmost in text[at, ...), the longest of those that begin there; begin == end == text.size() when there is
  // none.
  Found find(std::string_view text, size_t at) const;

 private:
  std::vector<AddedToken> longest_first_;
  std::array<bool, 256> begins_{};  // bytes that an added token begins with
};

// Everything that is wrong with a tokenizer's files.
class Faults {
 public:
  explicit Faults(std::string path) : path_(std::move(path)) {}
  // `where` in the files; of many of one kind give the first few.
  void add(const std::string& where, const std::string& rule);
  bool any() const { return !problems_.empty(); }
  // Throws ConfigError when there are any.
  void throw_any() const;

 private:
  std::string path_;
  std::vector<Problem> problems_;
};

// The spelling of tokens in a file.
enum class Spelling {
  ByteAlphabet,  // each byte as a character (byte_alphabet.h)
  Plain,         // as text, and bytes as "<0x0A>"
};

class BpeVocabulary {
 public:
  // `faults` must outlive this.
  explicit BpeVocabulary(Faults& faults, Spelling spelling = Spelling::ByteAlphabet)
      : faults_(faults), spelling_(spelling) {}

  // {"token": id, ...}, tokens in the file's spelling. `where` names the object in messages.
  void add_tokens(const nlohmann::json& vocab, const std::string& where);
  // A token that is text, not byte symbols. It may repeat one of the vocabulary, with the same id.
  void add_added(const std::string& content, int64_t id, TokenKind kind);
  // "left right" in that spelling. `place` is put before it in messages. A merge that was added before is a fault.
  void add_merge(const std::string& merge, const std::string& place = "");
  void add_merge_of(const std::string& left, const std::string& right, const std::string& place = "");
  // The tokens and merges; adds faults for merges of unknown tokens and bytes without a token, and, where pieces are
  // only ever merged, for tokens that no merge makes: a list of merges that was cut short, or is another vocabulary's.
  // Names such as "<pad>" are made by none.
  BpeModel finish(WholePieces whole_pieces);

 private:
  bool take(int64_t id, const std::string& name);
  void find_bytes_without_token();
  void find_tokens_without_merge();

  BpeToken token_of(const std::string& name) const;

  Faults& faults_;
  Spelling spelling_;
  std::unordered_map<std::string, uint32_t> id_of_;  // by the file's spelling
  BpeModel model_;
  int64_t num_listed_ = 0;  // tokens of add_tokens()
  std::unordered_set<uint64_t> merged_pairs_;
  std::vector<std::string> bad_merges_, equal_merges_, bad_ids_;
};

}  // namespace braid::tokenize
