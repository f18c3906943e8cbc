// Each test runs with io_uring and with threads.
#include "braid/disk/disk.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "braid/base/clock.h"
#include "tests/disk/disk_folder.h"
#include "tests/support/dice.h"

namespace braid::disk_test {
namespace {

using namespace braid::disk;

class DiskTest : public EveryEngine {};
INSTANTIATE_TEST_SUITE_P(Engines, DiskTest, testing::Values(Engine::IoUring, Engine::Threads), engine_name);

TEST_P(DiskTest, ReadsWhatWasWritten) {
  const auto disk = open(options(1 << 20));
  AlignedBuffer out = filled(64 << 10, 1), in(64 << 10);
  disk->wait(disk->write(128 << 10, out.bytes()));
  const Ticket read = disk->read(128 << 10, in.bytes());
  disk->wait(read);
  EXPECT_TRUE(are_equal(in, out));
  EXPECT_EQ(disk->bytes_written(), 64 << 10);
  EXPECT_EQ(disk->bytes_read(), 64 << 10);
  disk->wait(read);
  disk->wait({});
  EXPECT_TRUE(disk->notes().empty());
}

TEST_P(DiskTest, BytesThatWereNeverWrittenAreZero) {
  const auto disk = open(options(1 << 20));
  AlignedBuffer in = filled(1 << 20, 1), zeros(1 << 20);
  std::fill(zeros.bytes().begin(), zeros.bytes().end(), std::byte{0});
  disk->wait(disk->read(0, in.bytes()));
  EXPECT_TRUE(are_equal(in, zeros));
}

// The loop of disk.h's comment.
TEST_P(DiskTest, DoubleBufferingUpdatesEveryChunk) {
  constexpr size_t n = 10, bytes = 64 << 10;
  const auto disk = open(options(n * bytes));
  std::vector<AlignedBuffer> buffers;
  for (int i = 0; i < 3; ++i) buffers.emplace_back(bytes);
  for (int step = 0; step < 3; ++step) {
    Ticket written[3] = {}, next = disk->read(0, buffers[0].bytes());
    for (size_t i = 0; i < n; ++i) {
      const Ticket current = next;
      disk->wait(written[(i + 1) % 3]);
      if (i + 1 < n) next = disk->read(static_cast<int64_t>((i + 1) * bytes), buffers[(i + 1) % 3].bytes());
      disk->wait(current);
      for (std::byte& byte : buffers[i % 3].bytes()) byte = static_cast<std::byte>(static_cast<size_t>(byte) + i);
      written[i % 3] = disk->write(static_cast<int64_t>(i * bytes), buffers[i % 3].bytes());
    }
    disk->wait_all();
  }
  AlignedBuffer all(n * bytes);
  disk->wait(disk->read(0, all.bytes()));
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(static_cast<size_t>(all.data()[i]), 3 * (i / bytes)) << i;
}

struct Slot {
  AlignedBuffer buffer{64 * kBlockBytes};
  Ticket ticket;
  std::vector<std::byte> expected;  // of a read; empty for a write
};

void settle(Disk& disk, Slot& slot) {
  disk.wait(std::exchange(slot.ticket, {}));
  const auto expected = std::exchange(slot.expected, {});
  ASSERT_TRUE(std::equal(expected.begin(), expected.end(), slot.buffer.data()));
}

// A model in memory of the whole space. Operations overlap each other, and more than `depth` are asked for at once.
TEST_P(DiskTest, RandomOperationsEqualAModelInMemory) {
  constexpr int kBlocks = 64;
  const auto disk = open(options(kBlocks * kBlockBytes));
  std::vector<std::byte> model(kBlocks * kBlockBytes);
  std::vector<Slot> slots(12);
  Dice dice(7);
  for (int i = 0; i < 600; ++i) {
    Slot& slot = slots[static_cast<size_t>(dice.between(0, 11))];
    settle(*disk, slot);
    const int blocks = dice.between(1, 9), first = dice.between(0, kBlocks - blocks);
    const auto part = slot.buffer.first(blocks * kBlockBytes);
    const auto place = model.begin() + first * kBlockBytes;
    if (dice.between(0, 1) == 0) {
      fill(part, i);
      std::copy(part.begin(), part.end(), place);
      slot.ticket = disk->write(first * kBlockBytes, part);
    } else {
      slot.expected.assign(place, place + std::ssize(part));
      slot.ticket = disk->read(first * kBlockBytes, part);
    }
  }
  for (Slot& slot : slots) settle(*disk, slot);
}

TEST_P(DiskTest, RecordsOperationsThatEndBetweenItsBeginAndItsEnd) {
  const auto disk = open(options(1 << 20));
  AlignedBuffer out = filled(64 << 10, 1), in(64 << 10);
  disk->wait(disk->write(0, out.bytes()));
  EXPECT_TRUE(disk->recorded().empty());
  const double begin = now_seconds();
  disk->set_recording(Recording::On);
  disk->write(128 << 10, out.bytes());
  disk->wait(disk->read(128 << 10, in.bytes()));  // begins when the write has ended
  disk->set_recording(Recording::Off);
  const double end = now_seconds();
  disk->wait(disk->write(0, out.first(kBlockBytes)));
  const std::vector<Moved> record = disk->recorded();
  ASSERT_EQ(record.size(), 2u);
  EXPECT_EQ(record[0].direction, Direction::Write);
  EXPECT_EQ(record[1].direction, Direction::Read);
  for (const Moved& moved : record) {
    EXPECT_EQ(moved.offset, 128 << 10);
    EXPECT_EQ(moved.bytes, 64 << 10);
    EXPECT_LE(moved.begin, moved.end);
  }
  EXPECT_LE(begin, record[0].begin);
  EXPECT_LE(record[0].end, record[1].begin);
  EXPECT_LE(record[1].end, end);
  disk->set_recording(Recording::On);
  EXPECT_TRUE(disk->recorded().empty());
}

TEST_P(DiskTest, TwoDisksInOneProcessAreApart) {
  const auto one = open(options(1 << 20)), other = open(options(1 << 20));
  AlignedBuffer a = filled(1 << 20, 1), b = filled(1 << 20, 2), in_a(1 << 20), in_b(1 << 20);
  const Ticket wrote_a = one->write(0, a.bytes()), wrote_b = other->write(0, b.bytes());
  other->wait(wrote_b);
  one->wait(wrote_a);
  one->read(0, in_a.bytes());
  other->read(0, in_b.bytes());
  one->wait_all();
  other->wait_all();
  EXPECT_TRUE(are_equal(in_a, a));
  EXPECT_TRUE(are_equal(in_b, b));
}

TEST_P(DiskTest, PartsOfBlocksAndBytesOutsideAreRefused) {
  const auto disk = open(options(1 << 20));
  AlignedBuffer buffer(1 << 20);
  EXPECT_THROW(disk->read(512, buffer.first(kBlockBytes)), InternalError);
  EXPECT_THROW(disk->write(0, buffer.bytes().first(100)), InternalError);
  EXPECT_THROW(disk->write(0, buffer.bytes().subspan(512, kBlockBytes)), InternalError);
  EXPECT_THROW(disk->read(kBlockBytes, buffer.bytes()), InternalError);
  EXPECT_THROW(disk->read(-kBlockBytes, buffer.first(kBlockBytes)), InternalError);
  disk->wait_all();
}

// The child writes until it is killed.
TEST_P(DiskTest, KilledWhileItWritesLeavesNoFile) {
  int started[2];
  ASSERT_EQ(::pipe(started), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto disk = open(options(64 << 20));
    AlignedBuffer out = filled(8 << 20, 1);
    for (int i = 0;; ++i) {
      disk->write(i % 8 * (int64_t{8} << 20), out.bytes());
      if (i == 8 && ::write(started[1], "!", 1) != 1) ::_exit(1);
    }
  }
  char byte = 0;
  ASSERT_EQ(::read(started[0], &byte, 1), 1);
  EXPECT_TRUE(is_empty());
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(is_empty());
  ::close(started[0]);
  ::close(started[1]);
}

}  // namespace
}  // namespace braid::disk_test
