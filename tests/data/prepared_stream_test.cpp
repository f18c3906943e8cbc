// An epoch of prepared data: no sample lost or repeated, at constant memory, the same from anywhere on.
// BRAID_FULL: 200 million tokens.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "braid/base/seeds.h"
#include "braid/data/sampler.h"
#include "braid/data/token_file.h"
#include "tests/support/sample_stream.h"
#include "tests/support/scratch_folder.h"

namespace braid::data::prepared_stream_test {
namespace {

constexpr int kContext = 1024;
constexpr int64_t kVocab = 1 << 24;

// The token at each place: windows begin with their number, the rest looks random.
int64_t token_at(int64_t place) {
  if (place % kContext == 0) return place / kContext;
  return static_cast<int64_t>((static_cast<uint64_t>(place) * 0x9E3779B97F4A7C15) >> 40);
}

int64_t resident_bytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

class PreparedStream : public ScratchFolder {
 protected:
  // Token files whose ends lie inside windows.
  Blend written(int64_t num_tokens) {
    PosixFileSystem files;
    const auto pages = std::make_shared<ResidentPages>();
    std::vector<Tokens> parts;
    int64_t place = 0;
    for (int file = 0; place < num_tokens; ++file) {
      TokenFileWriter writer(files, path(cat("part", file)), kVocab, 0);
      const int64_t end = std::min(num_tokens, place + num_tokens / 4 + 777);
      while (place < end) {
        std::vector<uint32_t> document;
        for (int64_t length = std::min<int64_t>(1000 + place % 3001, end - place); length > 0; --length) {
          document.push_back(static_cast<uint32_t>(token_at(place++)));
        }
        writer.add_document(document);
      }
      writer.finish();
      parts.push_back(std::make_shared<TokenFile>(path(cat("part", file)), pages));
    }
    return {{std::make_shared<JoinedTokens>(std::move(parts)), 1}};
  }
};

TEST_F(PreparedStream, NoSampleIsLostOrRepeatedAtConstantMemory) {
  const int64_t num_tokens = std::getenv("BRAID_FULL") ? 200'000'000 : 2'000'000;
  const Blend blend = written(num_tokens);
  const Sampler sampler(blend, kContext, 7);
  const int64_t windows = (num_tokens - 1) / kContext;
  ASSERT_EQ(sampler.windows_per_epoch(), windows);
  std::vector<bool> seen(static_cast<size_t>(windows), false);
  std::vector<int64_t> tokens(kContext + 1), documents(kContext);
  const int64_t before = resident_bytes();
  int64_t most = before;
  for (int64_t i = 0; i < windows; ++i) {
    sampler.read(i, tokens);
    const int64_t window = tokens[0];
    ASSERT_TRUE(window >= 0 && window < windows && !seen[static_cast<size_t>(window)]) << i;
    seen[static_cast<size_t>(window)] = true;
    for (int j = 0; j <= kContext; ++j) ASSERT_EQ(tokens[static_cast<size_t>(j)], token_at(window * kContext + j));
    sampler.read_documents(i, documents);
    ASSERT_EQ(documents[0], 0);
    ASSERT_LE(documents.back(), 2);
    if (i % 1000 == 0) most = std::max(most, resident_bytes());
  }
  const int64_t growth = std::max(most, resident_bytes()) - before;
  RecordProperty("resident_growth_bytes", std::to_string(growth));
  std::printf("%lld tokens, %lld bytes of them; resident memory grew by %s\n", static_cast<long long>(num_tokens),
              static_cast<long long>(4 * num_tokens), human_bytes(growth).c_str());
  EXPECT_LT(growth, int64_t{160} << 20);  // 64 MiB of touched pages, what the kernel maps around them, the sanitizers'
}

TEST_F(PreparedStream, ResumedAnywhereItIsTheSameStream) {
  const int64_t num_tokens = std::getenv("BRAID_FULL") ? 200'000'000 : 2'000'000;
  const Blend blend = written(num_tokens);
  const Sampler whole(blend, kContext, 7);
  const int64_t windows = whole.windows_per_epoch();
  std::vector<uint64_t> hashes;
  for (int64_t i = 0; i < 2 * windows; i += 16) hashes.push_back(stream_hash(whole, kContext, i, 16));
  for (uint64_t cut = 0; cut < 40; ++cut) {
    const Sampler again(blend, kContext, 7);
    const size_t first = random_bits(1, cut) % hashes.size();
    for (size_t i = first; i < std::min(first + 5, hashes.size()); ++i) {
      ASSERT_EQ(stream_hash(again, kContext, static_cast<int64_t>(i) * 16, 16), hashes[i]) << i;
    }
  }
}

}  // namespace
}  // namespace braid::data::prepared_stream_test
