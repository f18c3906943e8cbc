// A token file, as it is and with digests that fit what the input says: behind them stand checks of its numbers.
#include <algorithm>
#include <cstring>
#include <memory>

#include "braid/base/errors.h"
#include "braid/data/token_file.h"
#include "tests/fuzz/target.h"

namespace braid::fuzz {

using namespace data;

namespace {

template <class Part>
Part part_at(const std::string& bytes, size_t offset) {
  Part part;
  std::memcpy(&part, bytes.data() + offset, sizeof part);
  return part;
}

template <class Part>
void put_part(std::string& bytes, size_t offset, const Part& part) {
  std::memcpy(bytes.data() + offset, &part, sizeof part);
}

// Digests of every block, where the numbers of header and footer leave room for them.
void seal_blocks(std::string& bytes, DigestKind kind, TokenFileFooter& footer, uint32_t width) {
  const uint64_t size = bytes.size(), begin = sizeof(TokenFileHeader), end = size - sizeof footer;
  constexpr uint64_t kBlock = 1 << 14;
  if (footer.num_tokens > size || footer.num_documents > size || width > 4) return;
  const auto token_bytes = static_cast<uint64_t>(padded_bytes(static_cast<int64_t>(footer.num_tokens), width));
  const uint64_t blocks = (token_bytes + kBlock - 1) / kBlock, ends = begin + token_bytes;
  const uint64_t table = ends + 8 * footer.num_documents;
  if (table + 8 * blocks != end) return;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t at = begin + i * kBlock;
    put_part(bytes, table + 8 * i, digest_of(kind, std::string_view(bytes).substr(at, std::min(kBlock, ends - at))));
  }
  footer.documents_digest = digest_of(kind, std::string_view(bytes).substr(ends, table - ends));
  footer.blocks_digest = digest_of(kind, std::string_view(bytes).substr(table, end - table));
}

std::string with_digests(std::string bytes) {
  if (bytes.size() < sizeof(TokenFileHeader) + sizeof(TokenFileFooter)) return bytes;
  auto header = part_at<TokenFileHeader>(bytes, 0);
  const size_t footer_at = bytes.size() - sizeof(TokenFileFooter);
  auto footer = part_at<TokenFileFooter>(bytes, footer_at);
  const DigestKind kind = digest_kind(header).value_or(DigestKind::Xxh3);
  seal_blocks(bytes, kind, footer, header.width);
  header.digest = digest_of_part(kind, header);
  footer.header_digest = header.digest;
  footer.digest = digest_of_part(kind, footer);
  put_part(bytes, 0, header);
  put_part(bytes, footer_at, footer);
  return bytes;
}

void read_all(const std::string& input) {
  const TokenFile file(as_file(input), std::make_shared<ResidentPages>(int64_t{1} << 20));
  std::vector<int64_t> all(static_cast<size_t>(file.num_tokens()));
  file.read(0, all);
  file.read_documents(0, all);
  file.verify();
  file.digest_as(DigestKind::Xxh64);
}

void run_token_file(const std::string& input) {
  try {
    read_all(input);
  } catch (const IoError&) {
    read_all(with_digests(input));
  }
}

std::string written(int64_t vocab, const std::vector<std::vector<uint32_t>>& documents) {
  PosixFileSystem files;
  const std::string path = as_file("") + ".tokens";
  TokenFileWriter writer(files, path, vocab, 7);
  for (const auto& document : documents) writer.add_document(document);
  writer.finish();
  const CheckedFile file(path);
  std::string bytes = file.content(1 << 20);
  files.remove_all(path);
  return bytes;
}

std::vector<std::string> token_file_seeds() {
  return {written(257, {}), written(257, {{1, 2, 3}, {}, {256}}), written(100'000, {{99'999, 0}, {5}})};
}

}  // namespace

Target token_file_target() { return {"token_file", run_token_file, token_file_seeds, {"xxh3", "xxh64", "BRAIDTOK"}}; }

}  // namespace braid::fuzz
