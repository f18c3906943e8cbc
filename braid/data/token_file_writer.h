// Writes one token file, document by document. Memory is constant except for 8 bytes per document.
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
  NamedDigest digest;  // digest of the footer, which covers every byte of the file

  bool operator==(const TokenFileInfo&) const = default;
};

class TokenFileWriter {
 public:
  // Creates `path`, replacing an existing file. All methods throw IoError.
  TokenFileWriter(FileSystem& files, const std::string& path, int64_t vocab, uint64_t tokenizer);

  // REQUIRES: every token lies in [0, vocab).
  void add_document(std::span<const uint32_t> tokens);
  int64_t num_tokens() const { return static_cast<int64_t>(footer_.num_tokens); }
  int64_t num_documents() const { return static_cast<int64_t>(ends_.size()); }
  // Completes the file and makes its content durable. The caller makes its name durable.
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
