// Ranks over Gloo whose process is killed: the others are told of it, by the name that a watcher gives or by that of
// the rank whose connection has closed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "braid/base/clock.h"
#include "tests/comm/gloo_ranks.h"
#include "tests/comm/values.h"
#include "tests/support/folder_store.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shared_array.h"

namespace braid::comm::tests::gloo_killed_test {
namespace {

using Body = std::function<void(Communicator&)>;

at::Tensor floats(int64_t count) { return empty<float>(count).zero_(); }

// Knows of a death when somebody who watches says so.
class WatchedFailureState final : public FailureState {
 public:
  explicit WatchedFailureState(const SharedArray<int>& known) : known_(known) {}
  void fail(const Failure& failure) override { own_.fail(failure); }
  std::optional<Failure> failure() const override {
    if (known_[0]) return Failure{1, -1, "killed by signal 9 (Killed)"};
    return own_.failure();
  }

 private:
  const SharedArray<int>& known_;
  OneFailureState own_;
};

enum class Watch { Nobody, Somebody };

class GlooKilled : public ScratchFolder {
 protected:
  // Returns the errors of the survivors of three processes when rank 1 kills itself in the middle of `body`.
  std::vector<std::string> told_of_death(const Body& body, Watch watch, ReductionOrder sums = ReductionOrder::Tree);

 private:
  void live(const WorldOptions& options, const Body& body) {
    alarm(100);
    HostQueue queue;
    std::string said;
    try {
      body(*make_gloo_world(options, queue));
    } catch (const CommError& error) {
      said = cat(error.failure().rank, ": ", error.failure().why);
    }
    options.store->set(cat(options.prefix, "said", options.self.rank), said);
  }

  int turn_ = 0;
};

std::vector<std::string> GlooKilled::told_of_death(const Body& body, Watch watch, ReductionOrder sums) {
  const SharedArray<int> known;
  FolderStore store(folder_);
  const std::string prefix = cat(++turn_, "/");
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.push_back(fork());
    if (ranks[rank] == 0) {
      WatchedFailureState failures(known);
      live({.self = {.rank = rank, .size = 3, .failures = &failures, .sums = sums}, .store = &store, .prefix = prefix},
           body);
      _exit(0);
    }
  }
  int status = 0;
  waitpid(ranks[1], &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  if (watch == Watch::Somebody) {
    usleep(30000);
    known[0] = 1;
  }
  std::vector<std::string> said;
  for (const int rank : {0, 2}) {
    waitpid(ranks[rank], &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    said.push_back(store.get(cat(prefix, "said", rank), 0).value_or("nothing"));
  }
  return said;
}

void die_soon(Communicator& world) {
  if (world.rank() == 1) {
    std::thread([] {
      usleep(20000);
      kill(getpid(), SIGKILL);
    }).detach();
  }
}

void sum_for_ever(Communicator& world) {
  die_soon(world);
  for (const at::Tensor tensor = floats(1 << 20);;) world.all_reduce(tensor, ReduceOp::Sum).wait_host();
}

void wait_for_message(Communicator& world) {
  die_soon(world);
  const P2p one{P2p::Kind::Recv, floats(4), world.rank() == 1 ? 0 : 1, 9};
  world.batch({&one, 1}).wait_host();
}

TEST_F(GlooKilled, both_ends_of_a_closed_connection_are_named) {
  for (const auto& said : {told_of_death(sum_for_ever, Watch::Nobody), told_of_death(wait_for_message, Watch::Nobody),
                           told_of_death(sum_for_ever, Watch::Nobody, ReductionOrder::Engine)}) {
    for (size_t i = 0; i < 2; ++i) {
      // A later survivor may see the other one leave; in one process they would know of one failure.
      EXPECT_TRUE(said[i].starts_with("-1: the connection between rank ")) << said[i];
    }
    EXPECT_TRUE(said[0].find("between rank 0 and rank 1 is closed") != std::string::npos ||
                said[1].find("between rank 1 and rank 2 is closed") != std::string::npos)
        << said[0] << "\n"
        << said[1];
  }
}

TEST_F(GlooKilled, what_a_watcher_knows_is_told_before_that) {
  for (const auto& body : {sum_for_ever, wait_for_message}) {
    for (const ReductionOrder sums : {ReductionOrder::Tree, ReductionOrder::Engine}) {
      for (const std::string& said : told_of_death(body, Watch::Somebody, sums))
        EXPECT_EQ(said, "1: killed by signal 9 (Killed)");
    }
  }
}

}  // namespace
}  // namespace braid::comm::tests::gloo_killed_test
