// Every number once, and the lowest failure whoever comes first.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint_reader.h"
#include "tests/support/thread_limit.h"

namespace braid::ckpt::parallel_reads_test {
namespace {

TEST(ParallelReads, EveryNumberIsReadOnce) {
  for (const int64_t count : {0, 1, 3, 1000}) {
    std::vector<std::atomic<int>> reads(static_cast<size_t>(count));
    read_in_parallel(count, [&](int64_t number, int) { ++reads[static_cast<size_t>(number)]; });
    for (const auto& times : reads) EXPECT_EQ(times, 1);
  }
}

TEST(ParallelReads, ReadersAtWorkAtTheSameTimeAreOthers) {
  std::atomic<int> calls[kReaders] = {};
  std::latch all_at_work(kReaders);
  read_in_parallel(kReaders, [&](int64_t, int reader) {
    ++calls[reader];
    all_at_work.arrive_and_wait();
  });
  for (const auto& times : calls) EXPECT_EQ(times, 1);
}

TEST(ParallelReads, AsManyReadersAsThereAreThreads) {
  for (const int threads : {0, 1}) {
    const ThreadLimit limit(threads);
    std::vector<std::atomic<int>> reads(1000);
    read_in_parallel(1000, [&](int64_t number, int) { ++reads[static_cast<size_t>(number)]; });
    for (const auto& times : reads) EXPECT_EQ(times, 1);
  }
}

TEST(ParallelReads, TheLowestThatFailsIsThrown) {
  for (int repeat = 0; repeat < 50; ++repeat) {
    const auto read = [](int64_t number, int) {
      if (number >= 20 && number % 3 == 0) throw IoError(cat("block ", number), -1, "is damaged");
    };
    try {
      read_in_parallel(200, read);
      FAIL() << "nothing was thrown";
    } catch (const IoError& error) {
      EXPECT_EQ(error.path(), "block 21");
    }
  }
}

}  // namespace
}  // namespace braid::ckpt::parallel_reads_test
