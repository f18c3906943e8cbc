// The sample tensors of this folder's tests must cover the cases they claim to.
#include "tests/ckpt/sample_tensors.h"

#include <gtest/gtest.h>

namespace braid::ckpt::sample_tensors_test {
namespace {

TEST(SampleTensors, CoverPaddingAndSegments) {
  EXPECT_EQ(meshes_up_to(8).size(), 38u);
  const auto tensors = sample_tensors(mesh::DeviceMesh({.tensor = 8}), 7).wanted;
  EXPECT_TRUE(tensors[0].placement.pieces.empty());  // rank 7 of 8 holds nothing but padding of 13 rows
  EXPECT_FALSE(equal_bits(tensors[0].local, sample_tensors(mesh::DeviceMesh({.tensor = 8}), 0).wanted[0].local));
}

}  // namespace
}  // namespace braid::ckpt::sample_tensors_test
