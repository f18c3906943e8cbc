// A vocabulary and its merges, read in the spelling of files, checked and converted to ids.
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

// A string that is one token wherever it stands in a text.
struct AddedToken {
  std::string content;  // must not be empty
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
  // Returns the leftmost added token in text[at, ...), and the longest of those that begin there. If there is none,
  // begin == end == text.size().
  Found find(std::string_view text, size_t at) const;

 private:
  std::vector<AddedToken> longest_first_;
  std::array<bool, 256> begins_{};  // whether an added token begins with this byte
};

// The list of faults in a tokenizer's files.
class Faults {
 public:
  explicit Faults(std::string path) : path_(std::move(path)) {}
  // Adds a fault at `where` in the files. Of many faults of one kind, add only the first few.
  void add(const std::string& where, const std::string& rule);
  bool any() const { return !problems_.empty(); }
  // Throws ConfigError if there are faults.
  void throw_any() const;

 private:
  std::string path_;
  std::vector<Problem> problems_;
};

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
  bool take(int64_t id, const std::string& name);
  void find_bytes_without_token();
  void find_tokens_without_merge();

  BpeToken token_of(const std::string& name) const;

  Faults& faults_;
  Spelling spelling_;
  std::unordered_map<std::string, uint32_t> id_of_;  // key: the file's spelling
  BpeModel model_;
  int64_t num_listed_ = 0;  // number of tokens added by add_tokens()
  std::unordered_set<uint64_t> merged_pairs_;
  std::vector<std::string> bad_merges_, equal_merges_, bad_ids_;
};

}  // namespace braid::tokenize
