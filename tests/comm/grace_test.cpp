// A grace has its seconds and its naps.
#include "braid/comm/transport/grace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace braid::comm::tests::grace_test {
namespace {

using transport::Grace;

TEST(Grace, lasts_for_all_its_naps_in_a_process_that_was_stopped) {
  Grace grace(5 * Grace::kNap);
  std::this_thread::sleep_for(std::chrono::duration<double>(6 * Grace::kNap));
  for (int nap = 0; nap < 5; ++nap) EXPECT_TRUE(grace.lasts()) << nap;
  EXPECT_FALSE(grace.lasts());
}

TEST(Grace, is_not_over_before_its_time_however_short_the_naps) {
  const double begin = now_seconds();
  Grace grace(5 * Grace::kNap);
  while (grace.lasts()) continue;
  EXPECT_GE(now_seconds() - begin, 5 * Grace::kNap);
}

}  // namespace
}  // namespace braid::comm::tests::grace_test
