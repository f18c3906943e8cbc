// The writer of token files. It writes tokens block by block, and the tables at the end.
#include "braid/data/token_file_writer.h"

#include <algorithm>
#include <cstring>

#include "braid/base/errors.h"
#include "braid/data/token_source.h"

namespace braid::data {
namespace {

constexpr DigestKind kDigests = DigestKind::Xxh3;

}  // namespace

TokenFileWriter::TokenFileWriter(FileSystem& files, const std::string& path, int64_t vocab, uint64_t tokenizer) {
  check(vocab >= 1 && vocab <= 1 << 24, "a vocabulary has up to 2^24 tokens");
  files.remove_all(path);
  file_ = files.create(path);
  header_.width = static_cast<uint32_t>(token_width(vocab));
  header_.vocab = static_cast<uint64_t>(vocab);
  header_.tokenizer = tokenizer;
  set_digests(header_, kDigests);
  block_.reserve(header_.block_bytes);
  append(std::as_bytes(std::span(&header_, 1)));
}

// Assumes a little-endian host: the low bytes of a token come first.
void TokenFileWriter::add_document(std::span<const uint32_t> tokens) {
  footer_.num_tokens += tokens.size();
  ends_.push_back(footer_.num_tokens);
  const size_t width = header_.width;
  while (!tokens.empty()) {
    const size_t at = block_.size(), count = std::min(tokens.size(), (header_.block_bytes - at) / width);
    block_.resize(at + count * width);
    for (size_t i = 0; i < count; ++i) {
      check(tokens[i] < header_.vocab, "a token lies inside the vocabulary");
      std::memcpy(block_.data() + at + i * width, &tokens[i], width);
    }
    tokens = tokens.subspan(count);
    if (block_.size() == header_.block_bytes) close_block();
  }
}

void TokenFileWriter::close_block() {
  block_digests_.push_back(digest_of(kDigests, block_));
  append(block_);
  block_.clear();
}

TokenFileInfo TokenFileWriter::finish() {
  block_.resize((block_.size() + 7) / 8 * 8);
  if (!block_.empty()) close_block();
  footer_.num_documents = ends_.size();
  footer_.documents_digest = digest_of(kDigests, std::as_bytes(std::span(ends_)));
  footer_.blocks_digest = digest_of(kDigests, std::as_bytes(std::span(block_digests_)));
  footer_.header_digest = header_.digest;
  footer_.digest = digest_of_part(kDigests, footer_);
  append(std::as_bytes(std::span(ends_)));
  append(std::as_bytes(std::span(block_digests_)));
  append(std::as_bytes(std::span(&footer_, 1)));
  file_->sync();
  file_->close();
  return {bytes_, num_tokens(), num_documents(), {footer_.digest, kDigests}};
}

void TokenFileWriter::append(std::span<const std::byte> bytes) {
  if (!bytes.empty()) file_->append(bytes);
  bytes_ += static_cast<int64_t>(bytes.size());
}

}  // namespace braid::data
