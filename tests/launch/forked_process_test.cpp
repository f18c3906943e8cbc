// Messages to a process that does not read.
#include "braid/launch/forked_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

namespace braid::launch::tests::forked_process_test {
namespace {

TEST(ForkedProcess, what_found_room_in_part_was_not_said) {
  const ForkedProcess child("a child", [](int) {
    for (;;) pause();
  });
  errno = EPIPE;  // of a call before
  EXPECT_FALSE(child.send(std::string(64 << 20, 'x')));
}

}  // namespace
}  // namespace braid::launch::tests::forked_process_test
