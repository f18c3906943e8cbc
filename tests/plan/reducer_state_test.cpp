// Bytes that compression keeps and sends for one gradient, counted by hand.
#include "braid/plan/reducer_state.h"

#include <gtest/gtest.h>

namespace braid::plan::reducer_state_test {
namespace {

ReducerBytes of(CompressionKind kind, const GradientShape& shape, int ranks = 4) {
  RunSpec run;
  run.sync.compression = kind;
  run.sync.compression_fraction = 0.01;
  run.sync.compression_rank = 4;
  return reducer_bytes(run, shape, ranks);
}

TEST(ReducerBytes, OfEveryKind) {
  const GradientShape matrix{100, 50, 5120};
  const double owed = 4 * 5120;
  EXPECT_EQ(of(CompressionKind::None, matrix), ReducerBytes());
  EXPECT_EQ(of(CompressionKind::BFloat16, matrix), (ReducerBytes{2 * 5120, 2 * 5120}));
  EXPECT_EQ(of(CompressionKind::TopK, matrix), (ReducerBytes{owed + 4 * 50 * 8, 2 * 50 * 8}));
  // Four whole blocks and one of 904 elements.
  EXPECT_EQ(of(CompressionKind::OneBit, matrix), (ReducerBytes{owed + 4 * 665, 2 * 665}));
  EXPECT_EQ(of(CompressionKind::EightBit, matrix), (ReducerBytes{owed + 4 * 5020, 2 * 5020}));
  const double factors = 4 * 4 * (100 + 50);
  EXPECT_EQ(of(CompressionKind::PowerSgd, matrix), (ReducerBytes{owed + 2 * factors + 4 * 4 * 50, factors}));
  EXPECT_EQ(of(CompressionKind::PowerSgd, {48, 1, 1024}), (ReducerBytes{4 * 1024 + 4 * 48, 4 * 48}));
  EXPECT_EQ(of(CompressionKind::TopK, matrix, 1), ReducerBytes()) << "there is nobody to tell";
}

}  // namespace
}  // namespace braid::plan::reducer_state_test
