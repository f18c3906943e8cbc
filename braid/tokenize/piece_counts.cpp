// The counts of pieces, block by block. A piece's end depends on the text after it, so the last pieces of a block are
// counted with the next block.
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

namespace {

constexpr int64_t kToldBytes = 1 << 20;  // bytes of lines between two calls of `progress`

// Counts the pieces of line files. Returns the bytes of the files.
int64_t add_lines(const std::vector<Document>& files, const ReaderOptions& options, DocumentPieces& pieces,
                  const std::function<void(int64_t)>& progress) {
  DocumentReader reader(files, options);
  size_t file = 0;
  int64_t before = 0, told = 0;  // bytes of the files before this one; bytes last reported
  while (const auto document = reader.next()) {
    for (; file < static_cast<size_t>(document->next_file); ++file) before += files[file].bytes;
    pieces.counts.add(document->text);
    ++pieces.num_documents;
    if (before + document->next_offset - told < kToldBytes) continue;
    told = before + document->next_offset;
    progress(told);
  }
  pieces.num_bad_lines = reader.num_bad_lines();
  for (; file < files.size(); ++file) before += files[file].bytes;
  return before;
}

}  // namespace

DocumentPieces document_pieces(const std::vector<Document>& files, std::unique_ptr<PieceCursor> cursor,
                               const ReaderOptions& options, const std::function<void(int64_t)>& progress) {
  std::vector<Document> lines, texts;
  for (const auto& file : files) (has_lines(file) ? lines : texts).push_back(file);
  DocumentPieces pieces{PieceCounts(std::move(cursor))};
  int64_t done = add_lines(lines, options, pieces, progress);
  for (const auto& file : texts) {
    pieces.counts.add_file(file.path, [&](int64_t bytes) { progress(done + bytes); });
    ++pieces.num_documents;
    done += file.bytes;
  }
  return pieces;
}

}  // namespace braid::tokenize
