// Lines one by one, text files in blocks.
#include "braid/tokenize/document_pieces.h"

namespace braid::tokenize {
namespace {

constexpr int64_t kToldBytes = 1 << 20;  // between two words about progress, of lines

// Returns the bytes of the files.
int64_t add_lines(const std::vector<Document>& files, const ReaderOptions& options, DocumentPieces& pieces,
                  const std::function<void(int64_t)>& progress) {
  DocumentReader reader(files, options);
  size_t file = 0;
  int64_t before = 0, told = 0;  // bytes of the files before the one at hand, and those told of
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

DocumentPieces document_pieces(const std::vector<Document>& files, const PretokenizerSpec& spec,
                               const ReaderOptions& options, const std::function<void(int64_t)>& progress) {
  std::vector<Document> lines, texts;
  for (const auto& file : files) (has_lines(file) ? lines : texts).push_back(file);
  DocumentPieces pieces{PieceCounts(spec)};
  int64_t done = add_lines(lines, options, pieces, progress);
  for (const auto& file : texts) {
    pieces.counts.add_file(file.path, [&](int64_t bytes) { progress(done + bytes); });
    ++pieces.num_documents;
    done += file.bytes;
  }
  return pieces;
}

}  // namespace braid::tokenize
