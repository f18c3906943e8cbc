// Values and errors come out of their bytes as they went in.
#include "braid/launch/rank_outcome.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <new>

#include "braid/base/errors.h"
#include "braid/base/memory_error.h"
#include "braid/base/packed.h"
#include "braid/base/text.h"

namespace braid::launch::rank_outcome_test {
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
  EXPECT_TRUE(failure.calls.empty());
  const std::vector<std::string> calls{"#16 barrier()", "#17 all_reduce(Float[8], sum) for wte.weight"};
  EXPECT_EQ(carried(CommError({"all_reduce #17 on tensor", 3, 0.125, "left", calls})).failure().calls, calls);
  const IoError io = carried(IoError("a file", 12, "is cut off"));
  EXPECT_EQ(io.path(), "a file");
  EXPECT_EQ(io.offset(), 12);
  EXPECT_EQ(carried(IoError("a file", -1, "")).offset(), -1);
  carried(RunError("the loss is not finite"));
  carried(InternalError("cannot be"));
  const MemoryShortage shortage = carried(MemoryError("no memory", {3, 4000, 500, 0})).shortage();
  EXPECT_EQ(shortage.rank, 3);
  EXPECT_EQ(shortage.held_bytes, 4000);
  EXPECT_EQ(shortage.asked_bytes, 500);
  EXPECT_EQ(shortage.limit_bytes, 0);
}

TEST(RankOutcome, no_memory_is_no_fault_of_the_program) {
  std::string bytes;
  try {
    throw std::bad_alloc();
  } catch (...) {
    bytes = RankOutcome::thrown();
  }
  EXPECT_THROW(RankOutcome::value(bytes), RunError);
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

std::string outcome_of(const auto& error) {
  try {
    throw error;
  } catch (...) {
    return RankOutcome::thrown();
  }
}

// The first word of the error's type and its text.
std::string thrown_of(const FailedLaunch& launch, const std::vector<std::string>& outcomes) {
  try {
    throw_error_of(launch, outcomes);
  } catch (const CommError& error) {
    return cat("comm: ", error.failure().op, ": ", error.failure().why);
  } catch (const ConfigError& error) {
    return cat("config: ", error.what());
  } catch (const IoError& error) {
    return cat("io: ", error.what());
  } catch (const std::exception& error) {
    return cat("other: ", error.what());
  }
}

const std::string kClosed = outcome_of(CommError({"barrier #1 on world", 1, 0.5, "has closed its connection"}));
const FailedLaunch kClosedByPeer{"ranks", {1, 0, "has closed its connection"}, 1, ""};

TEST(ErrorOfLaunch, is_what_the_reporter_threw) {
  const std::string diverged = outcome_of(RunError("the loss is not finite")), value = RankOutcome::returned("1");
  EXPECT_EQ(thrown_of({"ranks", {2, 2, ""}, 1, ""}, {outcome_of(RunError("later")), kClosed, diverged}),
            "other: the loss is not finite");
  EXPECT_EQ(thrown_of(kClosedByPeer, {kClosed, value}), "comm: barrier #1 on world: has closed its connection");
  EXPECT_EQ(thrown_of(kClosedByPeer, {value, value}), "comm: ranks: has closed its connection");
}

TEST(ErrorOfLaunch, is_a_ranks_own_where_the_reporter_only_lost_a_peer) {
  const ConfigError bad({{"data.paths", "text", "must name files", ""}});
  EXPECT_EQ(thrown_of(kClosedByPeer, {kClosed, outcome_of(bad)}), cat("config: ", bad.what()));
  FailedLaunch unnamed = kClosedByPeer;
  unnamed.failure.rank = -1;
  EXPECT_EQ(thrown_of(unnamed, {kClosed, kClosed, outcome_of(RunError("it diverged"))}), "other: it diverged");
}

TEST(ErrorOfLaunch, is_the_death_of_a_rank_whatever_others_throw_because_of_it) {
  const std::string own = outcome_of(RunError("woken"));
  EXPECT_EQ(thrown_of({"ranks", {1, 1, "killed"}, 1, ""}, {own, ""}), "comm: ranks: killed");
  const CommError woken(
      {"barrier #1 on world for start", 1, 0.5, "killed", {"#0 barrier()", "#1 barrier() for start"}});
  try {
    throw_error_of({"ranks", {1, -1, "killed"}, 1, ""}, {outcome_of(woken), ""});
    FAIL() << "nothing was thrown";
  } catch (const CommError& error) {
    EXPECT_EQ(error.failure().why, "killed; rank 0 was in barrier #1 on world for start");
    EXPECT_EQ(error.failure().calls, woken.failure().calls);
  }
  EXPECT_EQ(thrown_of({"ranks", {1, -1, "its node is lost"}, 1, ""}, {own, own}), "comm: ranks: its node is lost");
  EXPECT_EQ(thrown_of({"ranks", {1, 0, "closed"}, 1, ""}, {kClosed, "", own}),
            "comm: barrier #1 on world: has closed its connection");
  EXPECT_EQ(thrown_of({"ranks", {-1, 0, "closed"}, 1, ""}, {kClosed, "", own}),
            "comm: barrier #1 on world: has closed its connection");
}

TEST(ErrorOfLaunch, keeps_its_type_beside_a_rank_that_was_left_behind) {
  const auto with = [](const std::string& outcome) {
    return thrown_of({"ranks", {0, 0, "why"}, 1, "rank 1 is left behind"}, {outcome, ""});
  };
  const ConfigError bad({{"data.paths", "text", "must name files", ""}});
  EXPECT_EQ(with(outcome_of(bad)), cat("config: ", bad.what(), "\nrank 1 is left behind"));
  EXPECT_EQ(with(outcome_of(RunError("it diverged"))), "other: it diverged; rank 1 is left behind");
  EXPECT_EQ(with(outcome_of(IoError("text", -1, "is cut off"))), "io: text: is cut off; rank 1 is left behind");
  EXPECT_EQ(with(outcome_of(CommError({"sum", 1, 0, "is late"}))), "comm: sum: is late; rank 1 is left behind");
  EXPECT_EQ(with(outcome_of(CommError({"sum", 1, 0, "is late", {"#0 sum"}}))),
            "comm: sum: is late; rank 1 is left behind");
  EXPECT_EQ(with(""), "comm: ranks: why; rank 1 is left behind");
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
}  // namespace braid::launch::rank_outcome_test
