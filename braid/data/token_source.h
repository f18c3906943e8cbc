// Sequences of tokens, stored in memory, in a mapped file, or in several of these one after another.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace braid::data {

// A sequence of tokens cut into documents. Several threads may read it at once.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual int64_t num_tokens() const = 0;
  virtual int64_t num_documents() const = 0;
  // Fills `out` with the tokens begin, begin + 1, .. Throws IoError if a file is damaged. REQUIRES: these tokens lie
  // inside the source.
  virtual void read(int64_t begin, std::span<int64_t> out) const = 0;
  // Fills `out` with the document number of each of these tokens, counted from 0 over the source.
  virtual void read_documents(int64_t begin, std::span<int64_t> out) const = 0;
};

using Tokens = std::shared_ptr<const TokenSource>;

// Returns the bytes per token of a vocabulary, in memory and in files: 2 up to 65536 tokens, else 4.
constexpr int token_width(int64_t vocab) { return vocab <= 65536 ? 2 : 4; }

// Fills `out` for the tokens begin, begin + 1, ..: `first` plus the number of `ends` at or before the token. `ends` is
// ascending; each entry is one past a document's last token.
void document_numbers(std::span<const uint64_t> ends, int64_t begin, int64_t first, std::span<int64_t> out);

// Documents in memory.
class MemoryTokens final : public TokenSource {
 public:
  explicit MemoryTokens(int64_t vocab) : width_(token_width(vocab)) {}

  // Adds one document: `tokens`, then `end_of_text`.
  void add_document(std::span<const int> tokens, int end_of_text);
  // Adds one document, exactly `tokens`.
  void add_document(std::span<const int> tokens);

  int64_t num_tokens() const override { return static_cast<int64_t>(width_ == 2 ? narrow_.size() : wide_.size()); }
  int64_t num_documents() const override { return static_cast<int64_t>(ends_.size()); }
  void read(int64_t begin, std::span<int64_t> out) const override;
  void read_documents(int64_t begin, std::span<int64_t> out) const override;

 private:
  void add(int token);

  int width_;
  std::vector<uint16_t> narrow_;  // tokens if width_ is 2
  std::vector<uint32_t> wide_;    // tokens if width_ is 4
  std::vector<uint64_t> ends_;
};

// A concatenation of sources.
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
  std::vector<int64_t> first_token_, first_document_;  // by part; the last entry is the total
};

}  // namespace braid::data
