// Expectations of process ranks brought home to the test.
#pragma once

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "braid/base/text.h"
#include "braid/comm/shm/shared_world.h"
#include "braid/comm/shm/shm_transport.h"
#include "braid/comm/transport/process_communicator.h"
#include "braid/launch/process_ranks.h"
#include "tests/comm/values.h"

namespace braid::launch::tests {

// A rank that has done nothing for so long hangs, and is killed.
inline constexpr unsigned kTooLongSeconds = 200;

inline constexpr double kSoon = 30;  // seconds; a deadline is far later, and a busy machine sooner
inline constexpr double kDeadline = 100;

inline at::Tensor floats(int64_t count) { return comm::tests::empty<float>(count).zero_(); }

[[noreturn]] inline void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

inline std::string text(const testing::TestPartResultArray& failures) {
  std::string all;
  for (int i = 0; i < failures.size(); ++i) {
    const testing::TestPartResult& failure = failures.GetTestPartResult(i);
    all += cat(failure.file_name(), ":", failure.line_number(), ": ", failure.summary(), "\n");
  }
  return all;
}

// `body`, throwing std::runtime_error with the expectations that failed in it, if any did.
inline std::function<void(Communicator&)> with_expectations(std::function<void(Communicator&)> body) {
  return [body = std::move(body)](Communicator& world) {
    alarm(kTooLongSeconds);
    testing::TestPartResultArray failures;
    std::exception_ptr error;
    {
      testing::ScopedFakeTestPartResultReporter reporter(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &failures);
      try {
        body(world);
        world.queue().drain();
      } catch (...) {
        error = std::current_exception();
      }
    }
    if (failures.size() > 0) throw std::runtime_error(cat("rank ", world.rank(), ": ", text(failures)));
    if (error) std::rethrow_exception(error);
  };
}

// Throws what a rank throws, failed expectations included.
inline void run_forked(int num_ranks, std::function<void(Communicator&)> body, LaunchOptions options = {},
                       const Launcher& start = ProcessLauncher()) {
  options.deadline_seconds = std::min(options.deadline_seconds, kDeadline);
  const auto checked = with_expectations(std::move(body));
  const auto without_value = [&](Communicator& world) {
    checked(world);
    return std::string();
  };
  start.run(num_ranks, without_value, options);
}

// Does the same with a world in which the queue of each rank is make_queue(rank).
inline void run_forked_on_queues(int num_ranks, const std::function<void(Communicator&)>& body,
                                 const std::function<std::unique_ptr<Queue>(int rank)>& make_queue) {
  comm::shm::SharedWorld shared(num_ranks);
  run_forked(num_ranks, [&](Communicator& launched) {
    const int rank = launched.rank();
    const auto queue = make_queue(rank);
    const auto world = comm::transport::ProcessCommunicator::of_world(
        std::make_unique<comm::shm::ShmTransport>(shared, rank),
        {.rank = rank, .size = num_ranks, .failures = &shared, .deadline_seconds = kDeadline}, *queue);
    try {
      body(*world);
      queue->drain();
    } catch (const std::exception& error) {
      shared.fail({rank, rank, error.what()});
      throw;
    }
  });
}

}  // namespace braid::launch::tests
