// The bytes of a token file, shared by its reader and its writer (docs/token_file_format.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "braid/base/digest.h"

namespace braid {

// All numbers are little-endian. The file is: header, tokens padded with zeros to 8 bytes, ends of documents, digests
// of blocks, footer. Every byte is covered: the header and the footer by digests of their own, the tokens by the block
// digests, both tables by digests in the footer. The footer's digest covers, through them, the whole file.
struct TokenFileHeader {
  uint64_t magic = 0x4B4F544449415242;  // "BRAIDTOK"
  uint32_t version = 1;
  uint32_t width = 2;  // bytes of a token, 2 or 4
  uint64_t vocab = 0;
  uint64_t tokenizer = 0;  // tokenizer_identity.h
  uint64_t block_bytes = 1 << 14;
  uint64_t zeros[506] = {};  // tokens begin on a page
  uint64_t digest = 0;       // XXH64 of all before it
};
static_assert(sizeof(TokenFileHeader) == 4096);

struct TokenFileFooter {
  uint64_t num_tokens = 0;
  uint64_t num_documents = 0;
  uint64_t documents_digest = 0;  // XXH64 of the ends of documents
  uint64_t blocks_digest = 0;     // XXH64 of the digests of blocks
  uint64_t header_digest = 0;     // TokenFileHeader::digest
  uint64_t zero = 0;
  uint64_t magic = 0x42524149444B4F54;
  uint64_t digest = 0;  // XXH64 of all before it
};
static_assert(sizeof(TokenFileFooter) == 64);

inline uint64_t digest_of(std::span<const std::byte> bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.value();
}

// Of a header or footer: all but the digest at its end.
template <class Part>
uint64_t digest_of_part(const Part& part) {
  return digest_of(std::as_bytes(std::span(&part, 1)).first(sizeof(Part) - sizeof part.digest));
}

constexpr int64_t padded_bytes(int64_t num_tokens, int64_t width) { return (num_tokens * width + 7) / 8 * 8; }

}  // namespace braid
