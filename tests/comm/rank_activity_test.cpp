// Activities of one thread, read whole by others.
#include "braid/comm/rank_activity.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "braid/base/text.h"

namespace braid::comm::rank_activity_test {
namespace {

TEST(RankActivity, says_what_it_does_and_what_it_waits_for) {
  RankActivity activity;
  EXPECT_EQ(activity.look().text(), "");
  activity.begin("forward of microbatch 5 on stage 1");
  EXPECT_EQ(activity.look().text(), "forward of microbatch 5 on stage 1, 0.0 s");
  activity.begin_wait("all_reduce #7 on data");
  EXPECT_EQ(activity.look().text(), "forward of microbatch 5 on stage 1, waits for all_reduce #7 on data, 0.0 s");
  activity.end_wait();
  activity.begin_storage("save of step 3");
  const ActivitySnapshot look = activity.look();
  EXPECT_EQ(look.what, "save of step 3");
  EXPECT_EQ(look.waits_in, "");
  EXPECT_TRUE(look.of_storage);
  EXPECT_EQ(look.count, 2);
}

TEST(RankActivity, what_a_thread_does_aside_is_a_sign_of_the_rank) {
  RankActivity activity;
  activity.begin("step 3");
  {
    BackgroundActivity aside(&activity);
    EXPECT_FALSE(activity.look().of_storage);
    aside.begin("connecting to rank 1");
    aside.begin("connecting to rank 2");
    EXPECT_EQ(activity.look().count, 3);
    EXPECT_TRUE(activity.look().of_storage);
    EXPECT_EQ(activity.look().text(), "step 3, connecting to rank 2, 0.0 s");
  }
  EXPECT_FALSE(activity.look().of_storage);
  EXPECT_EQ(activity.look().text(), "step 3, 0.0 s");
  BackgroundActivity(nullptr).begin("nothing that is looked at");
}

TEST(RankActivity, a_server_waits_while_it_answers_nobody) {
  RankActivity activity;
  activity.begin("server 1");
  activity.begin_serving("requests of workers");
  EXPECT_TRUE(activity.look().serves);
  EXPECT_EQ(activity.look().waits_in, "requests of workers");
  {
    const BegunAnswer first(&activity), second(&activity);
    EXPECT_FALSE(activity.look().serves);
    EXPECT_EQ(activity.look().text(), "server 1, 0.0 s");
    EXPECT_EQ(activity.look().count, 3);
  }
  EXPECT_TRUE(activity.look().serves);
  activity.end_serving();
  EXPECT_FALSE(activity.look().serves);
  const BegunAnswer unrecorded(nullptr);
}

TEST(RankActivity, a_text_is_read_whole_or_not_at_all) {
  RankActivity activity;
  std::atomic<bool> ends = false;
  std::jthread writer([&] {
    for (int i = 0; !ends; ++i)
      activity.begin(std::string(static_cast<size_t>(20 + i % 100), static_cast<char>('a' + i % 26)));
  });
  for (int i = 0; i < 20000; ++i) {
    const std::string what = activity.look().what;
    if (what.find("killed") != std::string::npos) continue;  // the writer was always faster
    ASSERT_EQ(what.find_first_not_of(what.empty() ? 'a' : what[0]), std::string::npos) << what;
  }
  ends = true;
}

TEST(RankActivity, a_longer_text_is_cut) {
  RankActivity activity;
  activity.begin(std::string(1000, 'x'));
  EXPECT_EQ(activity.look().what, std::string(127, 'x'));
}

}  // namespace
}  // namespace braid::comm::rank_activity_test
