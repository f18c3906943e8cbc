// Tokens in their order, wherever they lie: in memory, in a mapped file, in several of these one after another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace braid::data {

// Threads may read at the same moment.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual int64_t num_tokens() const = 0;
  virtual int64_t num_documents() const = 0;
  // Tokens begin, begin + 1, .. into all of `out`; they lie inside the source (check). Throws IoError where a file is
  // damaged.
  virtual void read(int64_t begin, std::span<int64_t> out) const = 0;
  // The document each of these tokens is of, counted from 0 over the source.
  virtual void read_documents(int64_t begin, std::span<int64_t> out) const = 0;
};

using Tokens = std::shared_ptr<const TokenSource>;

// Bytes of one token of a vocabulary, in memory and in files: 2 up to 65536 tokens, else 4.
constexpr int token_width(int64_t vocab) { return vocab <= 65536 ? 2 : 4; }

// For tokens begin, begin + 1, .. the number of `ends` (ascending, one past each document's last token) at or before
// it, plus `first`.
void document_numbers(std::span<const uint64_t> ends, int64_t begin, int64_t first, std::span<int64_t> out);

// Documents in memory.
class MemoryTokens final : public TokenSource {
 public:
  explicit MemoryTokens(int64_t vocab) : width_(token_width(vocab)) {}

  // One document: `tokens`, then `end_of_text`.
  void add_document(std::span<const int> tokens, int end_of_text);
  // One document as it stands.
  void add_document(std::span<const int> tokens);

  int64_t num_tokens() const override { return static_cast<int64_t>(width_ == 2 ? narrow_.size() : wide_.size()); }
  int64_t num_documents() const override { return static_cast<int64_t>(ends_.size()); }
  void read(int64_t begin, std::span<int64_t> out) const override;
  void read_documents(int64_t begin, std::span<int64_t> out) const override;

 private:
  void add(int token);

  int width_;
  std::vector<uint16_t> narrow_;  // the tokens, when width_ is 2
  std::vector<uint32_t> wide_;    // when it is 4
  std::vector<uint64_t> ends_;
};

// Sources one after another as one.
class JoinedTokens final : public TokenSource {
 public:
  explicit JoinedTokens(std::vector<Tokens> parts);

  int64_t num_tokens() const override { return first_token_.back(); }
  int64_t num_documents() const override { return first_document_.back(); }
  void read(int64_t begin, std::span<int64_t> out) const override;
  void read_documents(int64_t begin, std::span<int64_t> out) const override;

 private:
  template <class Visit>
  void each_part(int64_t begin, std::span<int64_t> out, const Visit& visit) const;

  std::vector<Tokens> parts_;
  std::vector<int64_t> first_token_, first_document_;  // of each part; the last entry is the number of all
};

}  // namespace braid::data
