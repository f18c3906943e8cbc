// One node whose only rank asks its supervisor: no world of ranks.
#include "braid/launch/node_of_job.h"

#include <gtest/gtest.h>

#include "braid/control/join_job.h"
#include "braid/launch/rank_life.h"
#include "braid/launch/supervisor.h"
#include "tests/launch/forked.h"

namespace braid::launch_tests::node_of_job_test {
namespace {

// Ranks of a host that is ready long before another ask again and again.
TEST(NodeOfJob, questions_that_were_given_up_are_not_answered) {
  const auto solo = make_solo_job({"here", 1});
  JobRounds rounds(*solo);
  rounds.begin();
  RankBoard board(1);
  const std::vector<int> node_of_rank{0};
  NodeOfJob node(rounds, board, node_of_rank, 0);
  SignalRelay signals({});
  Supervisor supervisor({board, board, signals, node}, 1);
  supervisor.start(0, [](int line) noexcept {
    alarm(kTooLongSeconds);
    StoreOverLine store(line);
    for (int question = 0; question < 300; ++question) store.get("address", 0);
    store.set("address", std::string(4096, 'a'));
    poll(nullptr, 0, 300);  // meanwhile answers are not read; a line has room for some fifty
    leave_rank(line, frame_of({kEnd, store.get("address", kDeadline).value_or("")}));
  });
  supervisor.run();
  if (node.failure()) FAIL() << node.failure()->why;
  EXPECT_EQ(node.outcomes().at(0), std::string(4096, 'a'));
}

}  // namespace
}  // namespace braid::launch_tests::node_of_job_test
