// Values and errors come out of their bytes as they went in.
#include "braid/launch/rank_outcome.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/launch/packed.h"

namespace braid::rank_outcome_test {
namespace {

template <class Error>
Error carried(const Error& error) {
  std::string bytes;
  try {
    throw error;
  } catch (...) {
    bytes = RankOutcome::thrown();
  }
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(RankOutcome::complete(bytes.substr(0, length))) << length;
  }
  EXPECT_TRUE(RankOutcome::complete(bytes));
  try {
    RankOutcome::value(bytes);
  } catch (const Error& again) {
    EXPECT_STREQ(again.what(), error.what());
    return again;
  }
  ADD_FAILURE() << "not the same type";
  return error;
}

TEST(RankOutcome, errors_of_braid_keep_their_type_and_all_they_carry) {
  const std::vector<Problem> problems{{"model.heads", "6", "must be divisible by 4", "8", "run.toml:3"},
                                      {"", "", "line\nbreak", ""}};
  EXPECT_EQ(carried(ConfigError(problems)).problems(), problems);
  const CommFailure failure = carried(CommError({"all_reduce #17 on tensor", 3, 0.125, "left"})).failure();
  EXPECT_EQ(failure.op, "all_reduce #17 on tensor");
  EXPECT_EQ(failure.rank, 3);
  EXPECT_EQ(failure.elapsed_seconds, 0.125);
  EXPECT_EQ(failure.why, "left");
  const IoError io = carried(IoError("a file", 12, "is cut off"));
  EXPECT_EQ(io.path(), "a file");
  EXPECT_EQ(io.offset(), 12);
  EXPECT_EQ(carried(IoError("a file", -1, "")).offset(), -1);
  carried(RunError("the loss is not finite"));
  carried(InternalError("cannot be"));
}

TEST(RankOutcome, others_keep_what_they_say) {
  carried(std::runtime_error(""));
  std::string bytes;
  try {
    TORCH_CHECK(false, "shapes differ");
  } catch (...) {
    EXPECT_EQ(RankOutcome::text_of_thrown(), "shapes differ");
    bytes = RankOutcome::thrown();
  }
  try {
    RankOutcome::value(bytes);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "shapes differ");
  }
}

TEST(RankOutcome, a_value_comes_out_whatever_its_bytes_are) {
  for (const std::string& value : {std::string(), std::string("a\0b", 3), std::string(1 << 20, 'x')}) {
    const std::string bytes = RankOutcome::returned(value);
    EXPECT_TRUE(RankOutcome::complete(bytes));
    EXPECT_FALSE(RankOutcome::complete(bytes.substr(0, bytes.size() - 1)));
    EXPECT_EQ(RankOutcome::value(bytes), value);
  }
}

struct Inner {
  std::string name;
  std::vector<std::vector<double>> rows;
  bool operator==(const Inner&) const = default;
};
template <class Pack>
void members(Pack& pack, Inner& inner) {
  pack(inner.name, inner.rows);
}

TEST(Packed, nested_values_come_back_and_a_beginning_is_none) {
  const std::vector<Inner> value{{"a", {{1, 2}, {}}}, {"", {}}};
  const std::string bytes = packed(value);
  EXPECT_EQ(unpacked<std::vector<Inner>>(bytes), value);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(unpacked<std::vector<Inner>>(bytes.substr(0, length))) << length;
  }
}

}  // namespace
}  // namespace braid::rank_outcome_test
