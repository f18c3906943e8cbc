// Ranks that are threads own objects together, and get to know of a failure of their world.
#include "braid/comm/thread_ranks.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"

namespace braid::comm::tests::thread_ranks_test {
namespace {

TEST(ThreadRanks, all_own_the_roots_object) {
  std::weak_ptr<int> seen;
  run_ranks(4, [&](Communicator& world) {
    const auto own = world.rank() == 2 ? std::make_shared<int>(42) : nullptr;
    if (own) seen = own;
    const auto all = shared(*world.thread_ranks(), own, 2);
    EXPECT_EQ(*all, 42);
    const auto half = world.split(world.rank() % 2, 0, "half");
    const auto of_half = shared(*half->thread_ranks(), std::make_shared<int>(world.rank()), 1);
    EXPECT_EQ(*of_half, 2 + world.rank() % 2);
  });
  EXPECT_TRUE(seen.expired());
}

TEST(ThreadRanks, a_rank_that_disagrees_about_the_root_is_refused) {
  EXPECT_THROW(run_ranks(2, [](Communicator& world) { world.thread_ranks()->share(nullptr, world.rank()); }),
               CommError);
}

TEST(ThreadRanks, hear_of_the_first_failure_once_and_at_once) {
  std::vector<std::string> before, after, never;
  EXPECT_THROW(run_ranks(1,
                         [&](Communicator& world) {
                           ThreadRanks& ranks = *world.thread_ranks();
                           const auto note = [](std::vector<std::string>& to) {
                             return [&to](const Failure& failure) { to.push_back(failure.why); };
                           };
                           const auto early = ranks.on_failure(note(before));
                           ranks.on_failure(note(never)).reset();
                           world.abort("first");
                           world.abort("second");
                           const auto late = ranks.on_failure(note(after));
                         }),
               CommError);
  EXPECT_EQ(before, std::vector<std::string>{"first"});
  EXPECT_EQ(after, std::vector<std::string>{"first"});
  EXPECT_TRUE(never.empty());
}

}  // namespace
}  // namespace braid::comm::tests::thread_ranks_test
