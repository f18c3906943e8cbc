// Token sources in memory, and concatenations of sources.
#include "braid/data/token_source.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::data {
namespace {

void check_inside(int64_t begin, std::span<int64_t> out, int64_t num_tokens) {
  check(begin >= 0 && begin + static_cast<int64_t>(out.size()) <= num_tokens, "tokens are read inside their source");
}

}  // namespace

void document_numbers(std::span<const uint64_t> ends, int64_t begin, int64_t first, std::span<int64_t> out) {
  auto end = std::upper_bound(ends.begin(), ends.end(), static_cast<uint64_t>(begin));
  for (size_t i = 0; i < out.size(); ++i) {
    while (end != ends.end() && *end <= static_cast<uint64_t>(begin) + i) ++end;
    out[i] = first + (end - ends.begin());
  }
}

void MemoryTokens::add(int token) {
  check(token >= 0 && (width_ == 4 || token < 1 << 16), "a token fits its width");
  if (width_ == 2) {
    narrow_.push_back(static_cast<uint16_t>(token));
  } else {
    wide_.push_back(static_cast<uint32_t>(token));
  }
}

void MemoryTokens::add_document(std::span<const int> tokens) {
  for (const int token : tokens) add(token);
  ends_.push_back(static_cast<uint64_t>(num_tokens()));
}

void MemoryTokens::add_document(std::span<const int> tokens, int end_of_text) {
  for (const int token : tokens) add(token);
  add(end_of_text);
  ends_.push_back(static_cast<uint64_t>(num_tokens()));
}

void MemoryTokens::read(int64_t begin, std::span<int64_t> out) const {
  check_inside(begin, out, num_tokens());
  const auto count = static_cast<int64_t>(out.size());
  if (width_ == 2) {
    std::copy_n(narrow_.begin() + begin, count, out.begin());
  } else {
    std::copy_n(wide_.begin() + begin, count, out.begin());
  }
}

void MemoryTokens::read_documents(int64_t begin, std::span<int64_t> out) const {
  check_inside(begin, out, num_tokens());
  document_numbers(ends_, begin, 0, out);
}

JoinedTokens::JoinedTokens(std::vector<Tokens> parts) : parts_(std::move(parts)), first_token_{0}, first_document_{0} {
  for (const auto& part : parts_) {
    first_token_.push_back(first_token_.back() + part->num_tokens());
    first_document_.push_back(first_document_.back() + part->num_documents());
  }
}

void JoinedTokens::read(int64_t begin, std::span<int64_t> out) const {
  each_part(begin, out, [this](size_t part, int64_t from, std::span<int64_t> here) { parts_[part]->read(from, here); });
}

void JoinedTokens::read_documents(int64_t begin, std::span<int64_t> out) const {
  each_part(begin, out, [this](size_t part, int64_t from, std::span<int64_t> here) {
    parts_[part]->read_documents(from, here);
    for (int64_t& document : here) document += first_document_[part];
  });
}

// Calls `visit` for every part that holds some of the tokens begin, begin + 1, ... Its arguments are the part, the
// first such token's index in the part, and the tokens' range of `out`. Parts may be empty.
template <class Visit>
void JoinedTokens::each_part(int64_t begin, std::span<int64_t> out, const Visit& visit) const {
  check_inside(begin, out, num_tokens());
  const auto after = std::upper_bound(first_token_.begin(), first_token_.end(), begin);
  for (auto part = static_cast<size_t>(after - first_token_.begin()) - 1; !out.empty(); ++part) {
    const auto count = std::min(static_cast<size_t>(first_token_[part + 1] - begin), out.size());
    if (count > 0) visit(part, begin - first_token_[part], out.first(count));
    out = out.subspan(count);
    begin += static_cast<int64_t>(count);
  }
}

}  // namespace braid::data
