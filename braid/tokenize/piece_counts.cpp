// Counting, block by block. A piece's end depends on what lies just behind it, so the last pieces of a block wait for
// the next one.
#include "braid/tokenize/piece_counts.h"

#include <algorithm>
#include <span>

#include "braid/base/checked_file.h"

namespace braid::tokenize {
namespace {

constexpr int64_t kBlockBytes = int64_t{64} << 20;
constexpr size_t kMargin = 4096;

}  // namespace

size_t PieceCounts::add_all_but(size_t margin, std::string_view text) {
  cursor_->reset(text);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = cursor_->next();
    if (end + margin > text.size()) return begin;
    const auto piece = text.substr(begin, end - begin);
    const auto known = table_.find(piece);
    if (known != table_.end()) {
      ++known->second;
    } else {
      table_.emplace(piece, 1);
    }
    begin = end;
  }
  return text.size();
}

void PieceCounts::add(std::string_view text) { add_all_but(0, text); }

void PieceCounts::add_file(const std::string& path, const std::function<void(int64_t)>& progress) {
  const CheckedFile file(path, Links::Followed);
  std::string block;
  for (int64_t at = 0; at < file.bytes();) {
    const int64_t more = std::min(kBlockBytes, file.bytes() - at);
    const size_t kept = block.size();
    block.resize(kept + static_cast<size_t>(more));
    file.read(at, std::as_writable_bytes(std::span(block).subspan(kept)));
    at += more;
    block.erase(0, add_all_but(at < file.bytes() ? kMargin : 0, block));
    if (progress) progress(at);
  }
}

}  // namespace braid::tokenize
