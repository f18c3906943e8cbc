// pipeline.partition as text, as blocks and as units.
#include "braid/spec/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "braid/base/errors.h"

namespace braid::spec::partition_test {
namespace {

using Blocks = std::vector<double>;
using Units = std::vector<int>;

TEST(PartitionList, IsNumbersWithCommas) {
  EXPECT_EQ(partition_list("3,2.5,2.5"), (Blocks{3, 2.5, 2.5}));
  EXPECT_EQ(partition_list(" 3 , 2.5"), (Blocks{3, 2.5}));
  EXPECT_EQ(partition_list("6"), (Blocks{6}));
  for (const char* word : {"", ",", "3,", ",3", "3,,3", "3;3", "even", "3 3", "nan", "inf,1", "[3,3]"}) {
    EXPECT_FALSE(partition_list(word)) << word;
  }
}

TEST(EvenPartition, IsAsEvenAsPossible) {
  EXPECT_EQ(even_partition(6, 1), "6");
  EXPECT_EQ(even_partition(5, 2), "3,2");
  EXPECT_EQ(even_partition(8, 3), "3,3,2");
  EXPECT_EQ(even_partition(7, 3), "2,3,2");
  EXPECT_EQ(even_partition(6, 4), "1,2,2,1");
  EXPECT_EQ(even_partition(7, 4), "2,2,2,1");
  for (int pipe = 1; pipe <= 8; ++pipe) {
    for (int layers = pipe; layers <= 30; ++layers) {
      const Blocks held = *partition_list(even_partition(layers, pipe));
      EXPECT_EQ(std::accumulate(held.begin(), held.end(), 0.0), layers);
      const auto [low, high] = std::minmax_element(held.begin(), held.end());
      EXPECT_LE(*high - *low, 1);
      EXPECT_EQ(held.back(), *low);
    }
  }
}

RunSpec cut(int layers, const std::string& partition) {
  RunSpec spec;
  spec.model.layers = layers;
  spec.pipeline.partition = partition;
  return spec;
}

TEST(StageUnits, CutBetweenAndInsideBlocks) {
  EXPECT_EQ(stage_units(cut(6, "even"), 1), (Units{0, 14}));
  EXPECT_EQ(stage_units(cut(6, "even"), 3), (Units{0, 5, 9, 14}));
  EXPECT_EQ(stage_units(cut(6, "1,4,1"), 3), (Units{0, 3, 11, 14}));
  EXPECT_EQ(stage_units(cut(6, "2.5,0.5,3"), 3), (Units{0, 6, 7, 14}));
  EXPECT_EQ(stage_units(cut(2, "0,2,0"), 3), (Units{0, 1, 5, 6}));
  EXPECT_THROW(stage_units(cut(6, "3,3"), 3), InternalError);
  EXPECT_THROW(stage_units(cut(6, "measured"), 3), InternalError);
  EXPECT_THROW(stage_units(cut(6, "3,0,3"), 3), InternalError);
}

TEST(StageUnits, ReadBackAsTheirText) {
  for (const char* text : {"6", "3,3", "2.5,0.5,3", "0,6,0", "0.5,5.5"}) {
    const RunSpec spec = cut(6, text);
    EXPECT_EQ(partition_text(spec.model, stage_units(spec, static_cast<int>(partition_list(text)->size()))), text);
  }
}

}  // namespace
}  // namespace braid::spec::partition_test
