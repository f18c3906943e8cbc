// A sum of Gloo that is ended from outside while a message is under way. The recv of this file stands before the C
// library's.
#include "braid/comm/gloo/gloo_wire.h"

#include <ATen/ops/zeros.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "braid/control/key_value_store.h"

namespace braid::comm::tests::gloo_wire_test {

constexpr size_t kLong = 4096;  // bytes

// Long pieces of messages that still arrive; no limit where it is negative.
std::atomic<int> num_left = -1;
std::atomic<bool> is_held = false;

namespace {

using gloo::GlooWire;

constexpr double kLimitOfSums = 40;  // seconds

// Returns what sums of two ranks throw that are aborted when the long piece after `num_pieces` others has come in part.
std::vector<std::string> said_after(int num_pieces) {
  control::LocalStore store;
  std::unique_ptr<GlooWire> wires[2];
  std::vector<std::string> said(2);
  std::latch connected(3);
  const auto live = [&](int rank) {
    wires[rank] = std::make_unique<GlooWire>(GlooWire::Options{
        .rank = rank, .listener = gloo::Listener::at("127.0.0.1"), .store = &store, .sum_seconds = kLimitOfSums});
    connected.arrive_and_wait();
    try {
      for (;;) wires[rank]->sum(at::zeros({1 << 16}, at::kFloat));
    } catch (const transport::WireError& error) {
      said[rank] = error.what();
    }
  };
  num_left = num_pieces, is_held = false;
  {
    std::jthread first(live, 0), second(live, 1);
    connected.arrive_and_wait();
    while (!is_held) poll(nullptr, 0, 1);
    for (const auto& wire : wires) wire->abort();
  }
  num_left = -1;
  return said;
}

// Gloo forgets a message that is under way when its connection is closed, and what waits for it.
TEST(GlooWire, abort_ends_sums_in_the_middle_of_a_message) {
  for (int num_pieces = 0; num_pieces < 8; ++num_pieces) {
    for (const std::string& by : said_after(num_pieces)) {
      EXPECT_NE(by, "");
      EXPECT_EQ(by.find("Timed out waiting 40000ms"), std::string::npos) << num_pieces << ": " << by;
    }
  }
}

}  // namespace
}  // namespace braid::comm::tests::gloo_wire_test

extern "C" ssize_t recv(int socket, void* to, size_t count, int flags) {
  using namespace braid::comm::tests::gloo_wire_test;
  using Recv = ssize_t (*)(int, void*, size_t, int);
  static const auto next = reinterpret_cast<Recv>(dlsym(RTLD_NEXT, "recv"));
  if (count <= kLong || num_left < 0) return next(socket, to, count, flags);
  if (num_left > 0) {
    --num_left;
    return next(socket, to, count, flags);
  }
  if (!is_held.exchange(true)) return next(socket, to, kLong, flags);
  errno = EAGAIN;
  return -1;
}
