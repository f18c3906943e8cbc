// Each test runs with io_uring and with threads.
#include "braid/disk/disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/text.h"
#include "braid/disk/aligned_buffer.h"
#include "tests/support/dice.h"
#include "tests/support/scratch_folder.h"

namespace braid::disk_test {
namespace {

using namespace braid::disk;

class DiskTest : public ScratchFolder, public testing::WithParamInterface<Engine> {
 protected:
  DiskTest() {  // the name of a parameterised test has a slash: its folder has a parent
    std::filesystem::create_directories(folder_);
  }
  Options options(int64_t bytes) const { return {{folder_}, bytes, 8, Checksums::On, GetParam()}; }
};

void fill(std::span<std::byte> bytes, int seed) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 7 + i / 4096 + seed) % 251);
}

TEST_P(DiskTest, ReadsWhatWasWritten) {
  const auto disk = open(options(1 << 20));
  AlignedBuffer out(64 << 10), in(64 << 10);
  fill(out.bytes(), 1);
  disk->wait(disk->write(128 << 10, out.bytes()));
  disk->wait(disk->read(128 << 10, in.bytes()));
  EXPECT_EQ(std::memcmp(in.data(), out.data(), out.size()), 0);
  EXPECT_EQ(disk->bytes_written(), 64 << 10);
  EXPECT_EQ(disk->bytes_read(), 64 << 10);
}

// A model in memory of the whole space. Operations overlap each other and end in any order.
TEST_P(DiskTest, RandomOperationsEqualAModelInMemory) {
  constexpr int kBlocks = 64, kOperations = 600, kSlots = 12;
  const auto disk = open(options(kBlocks * kBlockBytes));
  std::vector<std::byte> model(kBlocks * kBlockBytes);
  struct Slot {
    AlignedBuffer buffer{kBlocks * kBlockBytes};
    Ticket ticket;
    std::vector<std::byte> expected;
    bool is_read = false;
  };
  std::vector<Slot> slots(kSlots);
  Dice dice(7);
  const auto settle = [&](Slot& slot) {
    disk->wait(std::exchange(slot.ticket, {}));
    if (slot.is_read) {
      ASSERT_EQ(std::memcmp(slot.buffer.data(), slot.expected.data(), slot.expected.size()), 0);
    }
    slot.is_read = false;
  };
  for (int i = 0; i < kOperations; ++i) {
    Slot& slot = slots[static_cast<size_t>(dice.between(0, kSlots - 1))];
    settle(slot);
    const int blocks = dice.between(1, 9), first = dice.between(0, kBlocks - blocks);
    const auto part = slot.buffer.first(blocks * kBlockBytes);
    const auto place = model.begin() + first * kBlockBytes;
    if (dice.between(0, 1) == 0) {
      fill(part, i);
      std::copy(part.begin(), part.end(), place);
      slot.ticket = disk->write(first * kBlockBytes, part);
    } else {
      slot.expected.assign(place, place + std::ssize(part));
      slot.is_read = true;
      slot.ticket = disk->read(first * kBlockBytes, part);
    }
  }
  for (Slot& slot : slots) settle(slot);
}

INSTANTIATE_TEST_SUITE_P(Engines, DiskTest, testing::Values(Engine::IoUring, Engine::Threads),
                         [](const auto& info) { return info.param == Engine::IoUring ? "IoUring" : "Threads"; });

}  // namespace
}  // namespace braid::disk_test
