// The layout of a token file, shared by its reader and its writer (docs/token_file_format.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "braid/base/digest.h"

namespace braid::data {

constexpr uint32_t kTokenFileVersion = 2;  // version 1 names no digest and uses XXH64; it can be read

// All numbers are little-endian. The file is: header, tokens padded with zeros to 8 bytes, ends of documents, digests
// of blocks, footer. Every byte is covered by a digest: the header and the footer by digests of their own, the tokens
// by the block digests, both tables by digests in the footer. Through these, the footer's digest covers the whole file.
struct TokenFileHeader {
  uint64_t magic = 0x4B4F544449415242;  // "BRAIDTOK"
  uint32_t version = kTokenFileVersion;
  uint32_t width = 2;  // bytes per token, 2 or 4
  uint64_t vocab = 0;
  uint64_t tokenizer = 0;  // identity of the tokenizer (tokenizer_identity.h)
  uint64_t block_bytes = 1 << 14;
  char digests[8] = {'x', 'x', 'h', '3'};  // kind of all digests in the file (digest.h)
  uint64_t zeros[505] = {};                // makes the tokens begin on a page
  uint64_t digest = 0;                     // digest of all bytes before this field
};
static_assert(sizeof(TokenFileHeader) == 4096);

struct TokenFileFooter {
  uint64_t num_tokens = 0;
  uint64_t num_documents = 0;
  uint64_t documents_digest = 0;  // digest of the ends of documents
  uint64_t blocks_digest = 0;     // digest of the digests of blocks
  uint64_t header_digest = 0;     // TokenFileHeader::digest
  uint64_t zero = 0;
  uint64_t magic = 0x42524149444B4F54;
  uint64_t digest = 0;  // digest of all bytes before this field
};
static_assert(sizeof(TokenFileFooter) == 64);

// Returns the kind of digests in the file of `header`, or nullopt for an unknown kind.
inline std::optional<DigestKind> digest_kind(const TokenFileHeader& header) {
  if (header.version == 1) return DigestKind::Xxh64;
  const std::string_view name(header.digests, sizeof header.digests);
  return braid::digest_kind(name.substr(0, name.find('\0')));
}

// Returns the digest of a header or footer, without the digest field at its end.
template <class Part>
uint64_t digest_of_part(DigestKind kind, const Part& part) {
  return digest_of(kind, std::as_bytes(std::span(&part, 1)).first(sizeof(Part) - sizeof part.digest));
}

// Sets the header's version, digest kind and digest for a file whose digests are of `kind`. XXH64 gives a header of
// version 1. The fields about tokens stay.
inline void set_digests(TokenFileHeader& header, DigestKind kind) {
  header.version = kind == DigestKind::Xxh64 ? 1 : kTokenFileVersion;
  const std::string name = kind == DigestKind::Xxh64 ? "" : text(kind);
  std::fill(std::begin(header.digests), std::end(header.digests), '\0');
  std::copy(name.begin(), name.end(), header.digests);
  header.digest = digest_of_part(kind, header);
}

constexpr int64_t padded_bytes(int64_t num_tokens, int64_t width) { return (num_tokens * width + 7) / 8 * 8; }

}  // namespace braid::data
