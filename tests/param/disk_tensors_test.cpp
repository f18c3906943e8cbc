// Tensors on a disk that exchange their places.
#include "braid/param/disk_tensors.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>

namespace braid::param::disk_tensors_test {
namespace {

constexpr int64_t kElements = 3 << 20;  // 12 MiB: stripes of both folders
constexpr MemoryCategory kStates = MemoryCategory::Optimizer;

TEST(DiskTensors, ThatAreSwappedHaveEachOthersValuesAtTheirAddresses) {
  DiskSpace space;
  space.place.folders = {".", "."};  // the files have no names
  const auto disk = std::make_shared<DiskTensors>(space, int64_t{3} * kElements * 4);
  at::Tensor a = disk->zeros(kElements, at::kFloat, kStates), b = disk->zeros(kElements, at::kFloat, kStates);
  at::Tensor other = disk->zeros(kElements, at::kFloat, MemoryCategory::Gradients);
  a.fill_(1), b.fill_(2), other.fill_(3);
  const void* const address = a.const_data_ptr();
  const int64_t places[] = {disk->offset(a), disk->offset(b)};

  disk->swap(a.narrow(0, 0, kElements), b);
  EXPECT_EQ(a.const_data_ptr(), address);
  EXPECT_EQ(disk->offset(a), places[1]);
  EXPECT_EQ(disk->offset(b.narrow(0, 1024, 1024)), places[0] + 4096) << "of a part";
  for (const auto& [tensor, value] : {std::pair{a, 2}, {b, 1}, {other, 3}}) {
    const at::Tensor want = at::full_like(tensor, value);
    EXPECT_TRUE(at::equal(tensor, want)) << "through the mapping";
    EXPECT_TRUE(at::equal(disk->loaded(tensor), want)) << "through the disk";
  }

  disk->change(a, [](const at::Tensor& values) { values.fill_(4); });
  EXPECT_TRUE(at::equal(a, at::full_like(a, 4)));
  EXPECT_TRUE(at::equal(b, at::full_like(b, 1)));
  disk->swap(b, a);
  EXPECT_EQ(disk->offset(a), places[0]);
  EXPECT_TRUE(at::equal(a, at::full_like(a, 1)));
}

}  // namespace
}  // namespace braid::param::disk_tensors_test
