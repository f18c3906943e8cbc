// Ranks and servers that fail, in every phase of a training with parameter servers: all others end, and the user hears
// of the first failure. A test that hangs is one that fails.
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <cstring>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"
#include "braid/param/memory_account.h"
#include "tests/support/failing_communicator.h"

namespace braid::modules::served_failures_test {
namespace {

constexpr int kRanks = 3;

SyncSpec served(Consistency consistency) {
  return {.replication = ReplicationKind::ParameterServer, .servers = 2, .consistency = consistency, .staleness = 1};
}

LayerList net() { return LayerList().add("linear", torch::nn::Linear(3, 2)); }

void step(DataParallel& parallel) {
  parallel.backward(parallel.forward(at::ones({4, 3})).sum());
  parallel.step(0.1);
}

// Returns the user's error; empty without one.
std::string outcome(const std::function<void(Communicator&)>& body) {
  try {
    run_ranks(kRanks, body);
  } catch (const RunError& error) {
    return error.what();
  } catch (const std::exception& error) {
    return cat("not the first failure: ", error.what());
  }
  return "";
}

const char* const kFailure = "rank 1 is out of paper";
void fail() { throw RunError(kFailure); }

// Constructor, two steps, a look, one more step, the end.
void train(Communicator& world, Consistency consistency) {
  DataParallel parallel(net(), world, {.sync = served(consistency)});
  step(parallel);
  step(parallel);
  parallel.with_whole_parameters([] {});
  step(parallel);
}

TEST(ServedFailures, ARankThatFailsAfterAnyOfItsCallsEndsTheRun) {
  for (const auto consistency : {Consistency::Bsp, Consistency::Ssp, Consistency::Asp}) {
    SCOPED_TRACE(consistency);
    int calls = 0;
    const auto outcome_after = [&](int fails_after) {
      return outcome([&](Communicator& world) {
        if (world.rank() != 1) return train(world, consistency);
        CallCount count{.fails_after = fails_after, .fail = fail};
        FailingCommunicator counted(world, count);
        train(counted, consistency);
        calls = count.calls;
      });
    };
    EXPECT_EQ(outcome_after(-1), "");
    ASSERT_GT(calls, 5);
    for (int after = 1; after <= calls; ++after) EXPECT_EQ(outcome_after(after), kFailure) << "after call " << after;
  }
}

// Under asp nobody waits for others, and each still hears of it.
TEST(ServedFailures, ARankThatFailsBetweenStepsEndsTheRun) {
  for (const auto consistency : {Consistency::Bsp, Consistency::Ssp, Consistency::Asp}) {
    const auto body = [&](Communicator& world) {
      DataParallel parallel(net(), world, {.sync = served(consistency)});
      step(parallel);
      if (world.rank() == 1) fail();
      while (true) step(parallel);
    };
    EXPECT_EQ(outcome(body), kFailure) << consistency;
  }
}

TEST(ServedFailures, ARankThatFailsWhileParametersAreLookedAtEndsTheRun) {
  const auto body = [&](Communicator& world) {
    DataParallel parallel(net(), world, {.sync = served(Consistency::Bsp)});
    step(parallel);
    parallel.with_whole_parameters([&] {
      if (world.rank() == 1) fail();
    });
    while (true) step(parallel);
  };
  EXPECT_EQ(outcome(body), kFailure);
}

// Memory that a server's thread asks for once `armed` is not there. The accounting allocator must be the one before and
// afterwards, for other tests.
class ServersWithoutMemory final : public c10::Allocator {
 public:
  ServersWithoutMemory() : inner_(*c10::GetCPUAllocator()) { install(); }

  void install() { c10::SetCPUAllocator(this, 200); }
  void uninstall() { c10::SetCPUAllocator(&inner_, 200); }

  c10::DataPtr allocate(size_t bytes) override {
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (armed && std::strcmp(name, "server 1") == 0) throw RunError("server 1 is out of paper");
    return inner_.allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_.raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }

  std::atomic<bool> armed = false;

 private:
  c10::Allocator& inner_;
};

TEST(ServedFailures, WhatAServerThrowsIsWhatTheUserHears) {
  param::install_memory_accounting();
  static auto* const memory = new ServersWithoutMemory;  // never destroyed: blocks may outlive the test
  memory->install();
  for (const auto consistency : {Consistency::Bsp, Consistency::Ssp, Consistency::Asp}) {
    const auto body = [&](Communicator& world) {
      DataParallel parallel(net(), world, {.sync = served(consistency)});
      step(parallel);
      memory->armed = true;
      while (true) step(parallel);
    };
    EXPECT_EQ(outcome(body), "server 1 is out of paper") << consistency;
    memory->armed = false;
  }
  memory->uninstall();
}

}  // namespace
}  // namespace braid::modules::served_failures_test
