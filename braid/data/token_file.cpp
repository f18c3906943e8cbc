// The reader of token files. It checks everything in a file before use.
#include "braid/data/token_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::data {
namespace {

constexpr int64_t kFaultBytes = 1 << 16;  // bytes the kernel maps around a cached page on a fault

}  // namespace

void ResidentPages::touched(int64_t bytes) {
  if (touched_.fetch_add(bytes, std::memory_order_relaxed) + bytes < limit_) return;
  touched_.store(0, std::memory_order_relaxed);
  const std::scoped_lock hold(lock_);
  for (const MappedFile* file : files_) file->release();
}

MappedFile::MappedFile(std::string path, std::shared_ptr<ResidentPages> pages)
    : path_(std::move(path)), pages_(std::move(pages)) {
  const CheckedFile file(path_, Links::Followed);
  const auto size = static_cast<size_t>(file.bytes());
  void* at = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0) : nullptr;
  if (at == MAP_FAILED) throw IoError(path_, -1, cat("cannot map: ", std::strerror(errno)));
  if (size > 0) ::madvise(at, size, MADV_RANDOM);
  bytes_ = {static_cast<const std::byte*>(at), size};
  const std::scoped_lock hold(pages_->lock_);
  pages_->files_.insert(this);
}

MappedFile::~MappedFile() {
  {
    const std::scoped_lock hold(pages_->lock_);
    pages_->files_.erase(this);
  }
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::touch(size_t num_bytes) const {
  pages_->touched((static_cast<int64_t>(num_bytes) / kFaultBytes + 1) * kFaultBytes);
}

// Safe while other threads read: they find the same bytes in the page cache again.
void MappedFile::release() const {
  if (!bytes_.empty()) ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

TokenFile::TokenFile(const std::string& path, std::shared_ptr<ResidentPages> pages) : file_(path, std::move(pages)) {
  read_header();
  read_footer();
  const auto blocks = static_cast<size_t>((footer_at_ - digests_at_) / 8);
  verified_ = std::vector<std::atomic<uint64_t>>((blocks + 63) / 64);
}

void TokenFile::fail(int64_t offset, const std::string& why) const { throw IoError(path(), offset, why); }

void TokenFile::read_header() {
  const auto bytes = file_.bytes();
  const TokenFileHeader known;
  if (bytes.size() < sizeof header_ + sizeof footer_) {
    fail(static_cast<int64_t>(bytes.size()), "ends inside its header: it is cut short or not a token file");
  }
  std::memcpy(&header_, bytes.data(), sizeof header_);
  if (header_.magic != known.magic) fail(0, "does not begin with BRAIDTOK: it is not a token file");
  if (header_.version < 1 || header_.version > known.version) {
    fail(8, cat("has format version ", header_.version, "; this braid reads 1 to ", known.version));
  }
  const auto kind = digest_kind(header_);
  if (!kind) fail(40, "names digests that this braid does not know, or is damaged there");
  kind_ = *kind;
  if (header_.digest != digest_of_part(kind_, header_)) fail(0, "its header is damaged");
  const bool good = header_.vocab >= 1 && header_.vocab <= 1 << 24 && header_.block_bytes == known.block_bytes &&
                    header_.width == static_cast<uint32_t>(token_width(static_cast<int64_t>(header_.vocab)));
  if (!good) fail(0, "its header names a width, vocabulary or block size that no token file has");
}

void TokenFile::read_footer() {
  const auto bytes = file_.bytes();
  footer_at_ = static_cast<int64_t>(bytes.size() - sizeof footer_);
  std::memcpy(&footer_, bytes.data() + footer_at_, sizeof footer_);
  if (footer_.digest != digest_of_part(kind_, footer_) || footer_.magic != TokenFileFooter().magic) {
    fail(footer_at_, "its footer is damaged or the file is cut short");
  }
  if (footer_.header_digest != header_.digest) fail(0, "its header is another file's");
  const auto limit = static_cast<uint64_t>(bytes.size());  // keeps the sums below from overflowing
  if (footer_.num_tokens > limit || footer_.num_documents > limit) fail(footer_at_, "its counts exceed its size");
  const int64_t token_bytes = padded_bytes(num_tokens(), width());
  const int64_t blocks =
      (token_bytes + static_cast<int64_t>(header_.block_bytes) - 1) / static_cast<int64_t>(header_.block_bytes);
  ends_at_ = static_cast<int64_t>(sizeof header_) + token_bytes;
  digests_at_ = ends_at_ + 8 * num_documents();
  if (digests_at_ + 8 * blocks != footer_at_) fail(footer_at_, "its counts do not add up to its size");
  const auto table = bytes.subspan(static_cast<size_t>(digests_at_), static_cast<size_t>(8 * blocks));
  if (digest_of(kind_, table) != footer_.blocks_digest) {
    fail(digests_at_, "its table of block digests is damaged");
  }
  file_.touch(static_cast<size_t>(8 * blocks));
}

std::span<const uint64_t> TokenFile::words(int64_t offset, int64_t count) const {
  return {reinterpret_cast<const uint64_t*>(file_.bytes().data() + offset), static_cast<size_t>(count)};
}

std::span<const std::byte> TokenFile::block(int64_t number) const {
  const auto size = static_cast<int64_t>(header_.block_bytes);
  const int64_t at = static_cast<int64_t>(sizeof header_) + number * size;
  return file_.bytes().subspan(static_cast<size_t>(at), static_cast<size_t>(std::min(size, ends_at_ - at)));
}

void TokenFile::verify_blocks(int64_t begin_byte, int64_t end_byte) const {
  const auto size = static_cast<int64_t>(header_.block_bytes);
  for (int64_t number = begin_byte / size; number * size < end_byte; ++number) {
    std::atomic<uint64_t>& bits = verified_[static_cast<size_t>(number / 64)];
    const uint64_t bit = uint64_t{1} << (number % 64);
    if (bits.load(std::memory_order_relaxed) & bit) continue;
    if (digest_of(kind_, block(number)) != words(digests_at_ + 8 * number, 1)[0]) {
      fail(static_cast<int64_t>(sizeof header_) + number * size, cat("block ", number, " of its tokens is damaged"));
    }
    bits.fetch_or(bit, std::memory_order_relaxed);
  }
}

void TokenFile::read(int64_t begin, std::span<int64_t> out) const {
  const auto count = static_cast<int64_t>(out.size());
  check(begin >= 0 && begin + count <= num_tokens(), "tokens are read inside their source");
  if (count == 0) return;
  file_.touch(out.size() * header_.width);
  verify_blocks(begin * width(), (begin + count) * width());
  const std::byte* at = file_.bytes().data() + sizeof header_ + begin * width();
  if (header_.width == 2) {
    std::copy_n(reinterpret_cast<const uint16_t*>(at), count, out.begin());
  } else {
    std::copy_n(reinterpret_cast<const uint32_t*>(at), count, out.begin());
  }
}

void TokenFile::verify_documents() const {
  const auto ends = words(ends_at_, num_documents());
  if (digest_of(kind_, std::as_bytes(ends)) != footer_.documents_digest)
    fail(ends_at_, "its table of documents is damaged");
  if (!std::is_sorted(ends.begin(), ends.end()) || (ends.empty() ? 0 : ends.back()) != footer_.num_tokens) {
    fail(ends_at_, "its table of documents does not end with its last token");
  }
  documents_verified_ = true;
}

void TokenFile::read_documents(int64_t begin, std::span<int64_t> out) const {
  check(begin >= 0 && begin + static_cast<int64_t>(out.size()) <= num_tokens(), "tokens are read inside their source");
  if (!documents_verified_) verify_documents();
  file_.touch(out.size() * 8);
  document_numbers(words(ends_at_, num_documents()), begin, 0, out);
}

TokenFileInfo TokenFile::info() const {
  return {static_cast<int64_t>(file_.bytes().size()), num_tokens(), num_documents(), {footer_.digest, kind_}};
}

void TokenFile::verify() const {
  verify_documents();
  const auto step = static_cast<int64_t>(header_.block_bytes) * 64;
  for (int64_t byte = 0; byte < ends_at_ - static_cast<int64_t>(sizeof header_); byte += step) {
    file_.touch(static_cast<size_t>(step));
    verify_blocks(byte, std::min(byte + step, ends_at_ - static_cast<int64_t>(sizeof header_)));
  }
}

NamedDigest TokenFile::digest_as(DigestKind kind) const {
  if (kind == kind_) return info().digest;
  verify();
  TokenFileHeader header = header_;
  set_digests(header, kind);
  Digest blocks(kind);
  const int64_t num_blocks = (footer_at_ - digests_at_) / 8;
  for (int64_t number = 0; number < num_blocks; ++number) {
    file_.touch(block(number).size());
    const uint64_t digest = digest_of(kind, block(number));
    blocks.add(std::as_bytes(std::span(&digest, 1)));
  }
  TokenFileFooter footer = footer_;
  footer.documents_digest = digest_of(kind, std::as_bytes(words(ends_at_, num_documents())));
  footer.blocks_digest = blocks.value();
  footer.header_digest = header.digest;
  return {digest_of_part(kind, footer), kind};
}

}  // namespace braid::data
