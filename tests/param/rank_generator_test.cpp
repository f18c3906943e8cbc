// A rank's generator: the same key gives the same numbers anywhere, and the default generator is left alone.
#include "braid/param/rank_generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

namespace braid::param::rank_generator_test {
namespace {

at::Tensor numbers(RankGenerator& generator, uint64_t key) { return at::rand({100}, generator.at_key(key)); }

TEST(RankGenerator, TheKeyAloneDecides) {
  RankGenerator one, two;
  numbers(two, 99);
  const at::Tensor expected = numbers(one, 5);
  EXPECT_TRUE(at::equal(expected, numbers(two, 5)));
  EXPECT_TRUE(at::equal(expected, numbers(one, 5)));
  EXPECT_FALSE(at::equal(expected, numbers(one, 6)));
}

// LibTorch's engine reads 32 bits of a seed.
TEST(RankGenerator, AllBitsOfTheKeyMatter) {
  RankGenerator generator;
  const at::Tensor expected = numbers(generator, 5);
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_FALSE(at::equal(expected, numbers(generator, 5 ^ uint64_t{1} << bit))) << bit;
  }
}

TEST(RankGenerator, TheDefaultGeneratorIsNotTouched) {
  at::Generator standard = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = standard.get_state().clone();
  RankGenerator generator;
  numbers(generator, 1);
  EXPECT_TRUE(at::equal(before, standard.get_state()));
}

}  // namespace
}  // namespace braid::param::rank_generator_test
