// Sums of Gloo: aborted while a message is under way, and of a rank that comes late. The recv of this file stands
// before the C library's.
#include "braid/comm/gloo/gloo_wire.h"

#include <ATen/ops/full.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braid/base/clock.h"
#include "braid/control/key_value_store.h"
#include "tests/comm/values.h"

namespace braid::comm::tests::gloo_wire_test {

constexpr size_t kLong = 4096;  // bytes

// The long piece of a message with this number comes in part, and no later one comes. No limit where it is negative.
std::atomic<int> cut_piece = -1;
std::atomic<int> num_pieces = 0;  // that have been read, and attempts after those

namespace {

using gloo::GlooWire;

constexpr double kLimitOfSums = 30;  // seconds

std::unique_ptr<GlooWire> wire_of(int rank, control::KeyValueStore& store) {
  return std::make_unique<GlooWire>(GlooWire::Options{
      .rank = rank, .listener = gloo::Listener::at("127.0.0.1"), .store = &store, .sum_seconds = kLimitOfSums});
}

// Returns what sums of two ranks throw that are aborted when piece `number` has come in part.
std::vector<std::string> errors_of_abort(int number) {
  control::LocalStore store;
  std::unique_ptr<GlooWire> wires[2];
  std::vector<std::string> errors(2);
  std::latch connected(3);
  const auto sum_on = [&](int rank) {
    wires[rank] = wire_of(rank, store);
    connected.arrive_and_wait();
    try {
      for (;;) wires[rank]->sum(at::full({1 << 16}, 1, at::kFloat));
    } catch (const transport::WireError& error) {
      errors[rank] = error.what();
    }
  };
  num_pieces = 0;
  cut_piece = number;
  {
    std::jthread first(sum_on, 0), second(sum_on, 1);
    connected.arrive_and_wait();
    while (num_pieces <= number) poll(nullptr, 0, 1);
    for (const auto& wire : wires) wire->abort();
  }
  cut_piece = -1;
  return errors;
}

// Runs `check` in a process of its own: threads that wait for forgotten messages end with it.
void check_in_child(const std::function<void()>& check) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(120);
    check();
    _exit(testing::Test::HasFailure());
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Gloo forgets a message that is under way when its connection is closed, and what waits for it.
TEST(GlooWire, abort_ends_sums_in_the_middle_of_a_message) {
  check_in_child([] {
    bool is_left = false;
    for (int number = 6; number < 60 && !is_left; ++number) {
      const double begin = now_seconds();
      for (const std::string& error : errors_of_abort(number)) {
        EXPECT_NE(error, "");
        is_left |= error == "aborted";
      }
      EXPECT_LT(now_seconds() - begin, kLimitOfSums) << "a sum, or the end of a wire, has waited for the limit";
    }
    EXPECT_TRUE(is_left) << "Gloo forgets no message any more";
  });
}

TEST(GlooWire, a_sum_waits_for_a_rank_that_is_late) {
  control::LocalStore store;
  const auto sum_on = [&](int rank) {
    const auto wire = wire_of(rank, store);
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(3500));
    const at::Tensor tensor = at::full({1 << 16}, rank + 1, at::kFloat);
    EXPECT_NO_THROW(wire->sum(tensor));
    EXPECT_TRUE(holds<float>(tensor, [](int64_t) { return 3.0F; }));
  };
  std::jthread first(sum_on, 0), second(sum_on, 1);
}

}  // namespace
}  // namespace braid::comm::tests::gloo_wire_test

extern "C" ssize_t recv(int socket, void* to, size_t count, int flags) {
  using namespace braid::comm::tests::gloo_wire_test;
  using Recv = ssize_t (*)(int, void*, size_t, int);
  static const auto next = reinterpret_cast<Recv>(dlsym(RTLD_NEXT, "recv"));
  if (count <= kLong || cut_piece < 0) return next(socket, to, count, flags);
  const int number = num_pieces++;
  if (number < cut_piece) return next(socket, to, count, flags);
  if (number == cut_piece) return next(socket, to, kLong, flags);
  errno = EAGAIN;
  return -1;
}
