// Errors come out of their bytes as they went in.
#include "braid/launch/carried_error.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "braid/base/errors.h"

namespace braid::carried_error_test {
namespace {

template <class Error>
Error carried(const Error& error) {
  std::string bytes;
  try {
    throw error;
  } catch (...) {
    bytes = CarriedError::current();
  }
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(CarriedError::complete(bytes.substr(0, length))) << length;
  }
  EXPECT_TRUE(CarriedError::complete(bytes));
  try {
    CarriedError::rethrow(bytes);
  } catch (const Error& again) {
    EXPECT_STREQ(again.what(), error.what());
    return again;
  }
  ADD_FAILURE() << "not the same type";
  return error;
}

TEST(CarriedError, errors_of_braid_keep_their_type_and_all_they_carry) {
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

TEST(CarriedError, others_keep_what_they_say) {
  carried(std::runtime_error(""));
  std::string bytes;
  try {
    TORCH_CHECK(false, "shapes differ");
  } catch (...) {
    EXPECT_EQ(CarriedError::current_text(), "shapes differ");
    bytes = CarriedError::current();
  }
  try {
    CarriedError::rethrow(bytes);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "shapes differ");
  }
}

TEST(CarriedError, none_throws_nothing) {
  EXPECT_TRUE(CarriedError::complete(CarriedError::none()));
  EXPECT_NO_THROW(CarriedError::rethrow(CarriedError::none()));
}

}  // namespace
}  // namespace braid::carried_error_test
