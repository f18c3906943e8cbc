// Freed blocks come back, distinct blocks never overlap, and what is kept stays bounded.
#include "braid/param/block_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "braid/base/seeds.h"

namespace braid::param::block_cache_test {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(BlockCache, AFreedBlockServesTheNextRequestOfItsClass) {
  BlockCache cache;
  void* block = cache.allocate(kMiB + 10);
  cache.free(block, kMiB + 10);
  EXPECT_GT(cache.kept_bytes(), 0u);
  void* again = cache.allocate(kMiB + 20);
  EXPECT_EQ(again, block);
  EXPECT_EQ(cache.kept_bytes(), 0u);
  cache.free(again, kMiB + 20);
}

TEST(BlockCache, SmallBlocksAreNotKept) {
  BlockCache cache;
  cache.free(cache.allocate(100), 100);
  EXPECT_EQ(cache.kept_bytes(), 0u);
}

TEST(BlockCache, EveryByteAskedForCanBeWrittenAndBlocksDoNotOverlap) {
  BlockCache cache;
  struct Block {
    unsigned char* at;
    size_t bytes;
    unsigned char fill;
  };
  std::vector<Block> live;
  for (uint64_t i = 0; i < 600; ++i) {
    if (live.size() > 20) {
      const size_t place = random_bits(1, i) % live.size();
      const Block block = live[place];
      for (size_t b = 0; b < block.bytes; b += 997) ASSERT_EQ(block.at[b], block.fill);
      ASSERT_EQ(block.at[block.bytes - 1], block.fill);
      cache.free(block.at, block.bytes);
      live.erase(live.begin() + static_cast<int64_t>(place));
    }
    const size_t bytes = BlockCache::kSmallestKept - 2 + random_bits(2, i) % (200 * 1024);
    auto* at = static_cast<unsigned char*>(cache.allocate(bytes));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(at) % 64, 0u);
    const auto fill = static_cast<unsigned char>(i % 251);
    std::memset(at, fill, bytes);
    live.push_back({at, bytes, fill});
  }
  for (const Block& block : live) cache.free(block.at, block.bytes);
}

TEST(BlockCache, KeptMemoryNeverExceedsTheMostInUse) {
  BlockCache cache;
  for (size_t bytes = kMiB; bytes < 64 * kMiB; bytes += kMiB) {
    cache.free(cache.allocate(bytes), bytes);
    EXPECT_LE(cache.kept_bytes(), bytes + bytes / 8 + 1);
  }
}

TEST(BlockCache, KeptBlocksGoWhereANewOneWouldExceedTheLimitWithThem) {
  BlockCache cache;
  cache.raise_limit(10 * kMiB);
  cache.free(cache.allocate(4 * kMiB), 4 * kMiB);
  void* const second = cache.allocate(6 * kMiB);
  EXPECT_EQ(cache.kept_bytes(), 4 * kMiB) << "10 MiB are allowed";
  void* const third = cache.allocate(kMiB);
  EXPECT_EQ(cache.kept_bytes(), 0u);
  cache.free(second, 6 * kMiB);
  cache.raise_limit(-10 * static_cast<int64_t>(kMiB));
  void* const fourth = cache.allocate(8 * kMiB);
  EXPECT_EQ(cache.kept_bytes(), 6 * kMiB) << "without a limit";
  cache.free(third, kMiB);
  cache.free(fourth, 8 * kMiB);
}

TEST(BlockCache, ThreadsShareIt) {
  BlockCache cache;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (uint64_t i = 0; i < 500; ++i) {
        const size_t bytes = BlockCache::kSmallestKept << random_bits(t, i) % 3;
        auto* at = static_cast<unsigned char*>(cache.allocate(bytes));
        std::memset(at, static_cast<int>(t), bytes);
        for (size_t b = 0; b < bytes; b += 4096) ASSERT_EQ(at[b], t);
        cache.free(at, bytes);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace braid::param::block_cache_test
