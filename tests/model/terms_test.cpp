// Terms against the same sums by hand.
#include "braid/model/terms.h"

#include <gtest/gtest.h>

namespace braid::model::terms_test {
namespace {

TEST(Terms, AreSumsOfProducts) {
  Extents extents;
  extents['b'] = 2, extents['k'] = 3, extents['m'] = 5, extents['d'] = 0.5;
  const Terms qkv(dims_of("b[kmd|kd|kd]"));
  EXPECT_EQ(qkv.at(extents), 2 * (7.5 + 1.5 + 1.5));
  EXPECT_EQ((3 * qkv + Terms(dims_of("bk"))).at(extents), 63 + 6);
  EXPECT_EQ((qkv * Terms(dims_of("k"))).at(extents), 63);
  EXPECT_EQ(qkv.without('k').at(extents), 7);
  EXPECT_EQ(Terms(Dims{}).at(extents), 1) << "a scalar has one element";
  EXPECT_EQ(Terms().at(extents), 0);
}

}  // namespace
}  // namespace braid::model::terms_test
