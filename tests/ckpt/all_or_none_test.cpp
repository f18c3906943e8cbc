// Errors of one rank on all ranks.
#include <gtest/gtest.h>

#include <new>

#include "braid/base/errors.h"
#include "braid/base/memory_error.h"
#include "braid/ckpt/exchange.h"
#include "braid/comm/local/run_ranks.h"

namespace braid::ckpt::all_or_none_test {
namespace {

TEST(AllOrNone, ReturnsWhereNobodyThrew) {
  run_ranks(3, [](Communicator& world) {
    int calls = 0;
    all_or_none([&] { ++calls; }, world);
    EXPECT_EQ(calls, 1);
  });
}

TEST(AllOrNone, ThrowsTheProblemsOfAllOnAll) {
  const Problem everywhere{"a", "1", "is wrong", "2", "run.toml:3"}, own{"b", "\xff", "is not text", "", ""};
  run_ranks(3, [&](Communicator& world) {
    try {
      all_or_none(
          [&] {
            if (world.rank() == 1) throw ConfigError({everywhere, own});
            if (world.rank() == 2) throw ConfigError({everywhere});
          },
          world);
      ADD_FAILURE() << "rank " << world.rank() << " went on";
    } catch (const ConfigError& error) {
      ASSERT_EQ(error.problems().size(), 2u);
      EXPECT_EQ(error.problems()[0], everywhere);
      EXPECT_EQ(error.problems()[1].rule, own.rule);
    }
  });
}

TEST(AllOrNone, ThrowsTheIoErrorOfTheLowestRankBeforeAnyProblem) {
  run_ranks(4, [](Communicator& world) {
    try {
      all_or_none(
          [&] {
            if (world.rank() == 0) throw ConfigError({{"a", "", "is wrong", ""}});
            if (world.rank() > 1) throw IoError("file", world.rank(), "is broken");
          },
          world);
      ADD_FAILURE() << "rank " << world.rank() << " went on";
    } catch (const IoError& error) {
      EXPECT_EQ(error.path(), "file");
      EXPECT_EQ(error.offset(), 2);
      EXPECT_EQ(error.why(), "is broken");
    }
  });
}

TEST(AllOrNone, WhoHasNoMemoryEndsTheStepOfAll) {
  run_ranks(3, [](Communicator& world) {
    try {
      all_or_none(
          [&] {
            if (world.rank() == 1) throw std::bad_alloc();
            if (world.rank() == 2) throw RunError("is torn");
          },
          world);
      ADD_FAILURE() << "rank " << world.rank() << " went on";
    } catch (const RunError& error) {
      EXPECT_STREQ(error.what(), "there is no memory for it");
    }
  });
}

TEST(AllOrNone, ThrowsTheShortageOfMemoryWithItsNumbers) {
  run_ranks(2, [](Communicator& world) {
    try {
      all_or_none(
          [&] {
            if (world.rank() == 1) throw MemoryError("rank 1 needs more", {1, 200, 30, 220});
          },
          world);
      ADD_FAILURE() << "rank " << world.rank() << " went on";
    } catch (const MemoryError& error) {
      EXPECT_STREQ(error.what(), "rank 1 needs more");
      EXPECT_EQ(error.shortage().rank, 1);
      EXPECT_EQ(error.shortage().limit_bytes, 220);
    }
  });
}

}  // namespace
}  // namespace braid::ckpt::all_or_none_test
