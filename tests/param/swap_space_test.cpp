// Memory that moves to a disk and back: its contents, the places on disk, and what stays in memory meanwhile.
#include "braid/param/swap_space.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/dice.h"

namespace braid::param::swap_space_test {
namespace {

constexpr int64_t kBlock = disk::kBlockBytes;

std::shared_ptr<SwapSpace> space_of(int64_t blocks, int64_t ahead = 0) {
  return std::make_shared<SwapSpace>(
      SwapOptions{.place = {.folders = {"."}, .bytes = blocks * kBlock}, .most_copied = 0, .ahead = ahead});
}

// Returns bytes that differ from those of other numbers.
at::Tensor numbered(int number, int64_t bytes) {
  return at::arange(bytes, at::kLong).add_(number).mul_(31).to(at::kByte);
}

bool holds(Swapped& swapped, const at::Tensor& want) {
  const c10::Storage memory = swapped.memory();
  return std::memcmp(memory.data(), want.const_data_ptr(), want.nbytes()) == 0;
}

TEST(SwapSpace, GivesBackWhatItTook) {
  const auto space = space_of(64);
  std::vector<at::Tensor> tensors;
  std::vector<std::shared_ptr<Swapped>> kept;
  for (int i = 0; i < 8; ++i) {
    tensors.push_back(numbered(i, 1000 + 2500 * i));
    kept.push_back(space->out(tensors.back().storage()));
  }
  for (int i = 8; i-- > 0;) EXPECT_TRUE(holds(*kept[static_cast<size_t>(i)], tensors[static_cast<size_t>(i)])) << i;
  EXPECT_EQ(space->bytes_read(), space->bytes_written());
}

TEST(SwapSpace, TakesNothingWithoutRoom) {
  const auto space = space_of(3);
  const at::Tensor two = numbered(1, 2 * kBlock);
  auto first = space->out(two.storage());
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(space->out(two.storage()), nullptr);
  first.reset();
  EXPECT_NE(space->out(two.storage()), nullptr) << "the place is free again";
}

// Sizes that no other step has: places that are free are joined and divided.
TEST(SwapSpace, UsesFreePlacesForMemoryOfOtherSizes) {
  const auto space = space_of(40);
  Dice dice(7);
  for (int step = 0; step < 200; ++step) {
    std::vector<std::shared_ptr<Swapped>> kept;
    for (int64_t blocks = 0; blocks < 32;) {
      const int64_t size = dice.between(1, 8);
      kept.push_back(space->out(numbered(step, size * kBlock).storage()));
      ASSERT_NE(kept.back(), nullptr) << "step " << step;
      blocks += size;
    }
    while (!kept.empty()) kept.erase(kept.begin() + dice.between(0, static_cast<int>(kept.size()) - 1));
  }
}

TEST(SwapSpace, MemoryWhoseCopyIsStillThereIsNotRead) {
  const auto space = std::make_shared<SwapSpace>(SwapOptions{.place = {.folders = {"."}, .bytes = 8 * kBlock}});
  const at::Tensor tensor = numbered(1, kBlock);
  const auto kept = space->out(tensor.storage()), later = space->out(tensor.storage());
  EXPECT_TRUE(kept->is_in_memory());
  EXPECT_TRUE(holds(*kept, tensor));
  EXPECT_EQ(space->bytes_read(), 0);
  space->next_part();
  EXPECT_TRUE(later->is_in_memory()) << "of the last part";
  space->next_part();
  EXPECT_FALSE(later->is_in_memory());
  EXPECT_TRUE(holds(*later, tensor));
  EXPECT_EQ(space->bytes_read(), kBlock);
}

TEST(SwapSpace, ReadsAheadAsMuchAsItIsTold) {
  const auto space = space_of(8, 2 * kBlock);
  const at::Tensor tensor = numbered(1, kBlock);
  std::vector<std::shared_ptr<Swapped>> kept;
  for (int i = 0; i < 5; ++i) kept.push_back(space->out(tensor.storage(), i > 0 ? kept.back() : nullptr));
  kept[4]->memory();
  EXPECT_EQ(space->bytes_read(), 3 * kBlock);
  EXPECT_TRUE(kept[2]->is_in_memory());
  EXPECT_FALSE(kept[1]->is_in_memory());
}

}  // namespace
}  // namespace braid::param::swap_space_test
