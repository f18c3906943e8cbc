// Memory-mapped token files.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "braid/data/token_file_layout.h"
#include "braid/data/token_file_writer.h"
#include "braid/data/token_source.h"

namespace braid::data {

class MappedFile;

// The resident pages of mapped files. After reads of about `limit` bytes, releases the pages of all its files. They
// stay in the system's page cache, and the process stays small however much it reads. Thread-safe.
class ResidentPages {
 public:
  explicit ResidentPages(int64_t limit = int64_t{64} << 20) : limit_(limit) {}
  void touched(int64_t bytes);

 private:
  friend class MappedFile;
  const int64_t limit_;
  std::atomic<int64_t> touched_ = 0;
  std::mutex lock_;  // guards files_
  std::set<const MappedFile*> files_;
};

// A whole file mapped for reading. If another process cuts the file short while it is mapped, this process is killed
// (SIGBUS). Prepared data is written once and never changed in place.
class MappedFile {
 public:
  // Throws IoError if `path` cannot be opened or mapped, or is not a regular file. The mapping is advised for random
  // access.
  MappedFile(std::string path, std::shared_ptr<ResidentPages> pages);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  // Accounts for a range of `num_bytes`. Call this before each read of a range.
  void touch(size_t num_bytes) const;

 private:
  friend class ResidentPages;
  void release() const;

  std::string path_;
  std::shared_ptr<ResidentPages> pages_;
  std::span<const std::byte> bytes_;
};

// A reader of one token file. Memory: one bit per block of 16 KiB, and the pages that ResidentPages lets the mapping
// keep. A block is verified when it is first read: damage gives an IoError with the path and the block's offset, never
// a wrong token.
class TokenFile final : public TokenSource {
 public:
  // Opens the file and verifies its header, its footer and the digests of blocks. Throws IoError.
  TokenFile(const std::string& path, std::shared_ptr<ResidentPages> pages);

  int64_t num_tokens() const override { return static_cast<int64_t>(footer_.num_tokens); }
  int64_t num_documents() const override { return static_cast<int64_t>(footer_.num_documents); }
  void read(int64_t begin, std::span<int64_t> out) const override;
  void read_documents(int64_t begin, std::span<int64_t> out) const override;

  const std::string& path() const { return file_.path(); }
  int width() const { return static_cast<int>(header_.width); }
  int64_t vocab() const { return static_cast<int64_t>(header_.vocab); }
  uint64_t tokenizer() const { return header_.tokenizer; }
  TokenFileInfo info() const;
  // Reads and verifies every byte. Throws IoError at the first damaged one.
  void verify() const;
  // Returns info().digest of a file with the same content but digests of `kind`. If that is not the file's own kind,
  // reads and verifies every byte.
  NamedDigest digest_as(DigestKind kind) const;

 private:
  [[noreturn]] void fail(int64_t offset, const std::string& why) const;
  void read_header();
  void read_footer();
  void verify_blocks(int64_t begin_byte, int64_t end_byte) const;
  void verify_documents() const;
  std::span<const std::byte> block(int64_t number) const;
  std::span<const uint64_t> words(int64_t offset, int64_t count) const;

  MappedFile file_;
  TokenFileHeader header_;
  DigestKind kind_ = DigestKind::Xxh3;  // kind of all digests in the file
  TokenFileFooter footer_;
  int64_t ends_at_ = 0, digests_at_ = 0, footer_at_ = 0;  // offsets in the file
  mutable std::vector<std::atomic<uint64_t>> verified_;   // one bit per block
  mutable std::atomic<bool> documents_verified_ = false;
};

}  // namespace braid::data
