// Writes one token file, document by document, in constant memory but for 8 bytes per document.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/base/file_system.h"
#include "braid/data/token_file_layout.h"

namespace braid::data {

// Facts about a finished file that identify it.
struct TokenFileInfo {
  int64_t bytes = 0, num_tokens = 0, num_documents = 0;
  NamedDigest digest;  // of the footer, and so of every byte

  bool operator==(const TokenFileInfo&) const = default;
};

class TokenFileWriter {
 public:
  // Creates `path`, replacing a file that is there. All methods throw IoError.
  TokenFileWriter(FileSystem& files, const std::string& path, int64_t vocab, uint64_t tokenizer);

  // Every token lies in [0, vocab) (check).
  void add_document(std::span<const uint32_t> tokens);
  int64_t num_tokens() const { return static_cast<int64_t>(footer_.num_tokens); }
  int64_t num_documents() const { return static_cast<int64_t>(ends_.size()); }
  // Completes the file and makes its bytes durable; its name is the caller's to make so.
  TokenFileInfo finish();

 private:
  void close_block();
  void append(std::span<const std::byte> bytes);

  std::unique_ptr<WritableFile> file_;
  TokenFileHeader header_;
  TokenFileFooter footer_;
  std::vector<uint64_t> ends_, block_digests_;
  std::vector<std::byte> block_;
  int64_t bytes_ = 0;
};

}  // namespace braid::data
