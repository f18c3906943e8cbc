// Which token a draw chooses. No model.
#include "braid/train/token_choice.h"

#include <gtest/gtest.h>

#include <vector>

namespace braid::train::token_choice_test {
namespace {

const std::vector<double> kLikely = {0.5, 0.25, 0.125, 0.125};

TEST(ChosenPlace, DrawsFallIntoSharesOfTheirWidth) {
  const double draws[] = {0, 0.49, 0.5, 0.74, 0.75, 0.87, 0.876, 0.999};
  const size_t places[] = {0, 0, 1, 1, 2, 2, 3, 3};
  for (size_t i = 0; i < std::size(draws); ++i) EXPECT_EQ(chosen_place(kLikely, 1, draws[i]), places[i]) << draws[i];
}

TEST(ChosenPlace, OnlyTheLikeliestThatHaveTheMassTogetherAndInProportion) {
  EXPECT_EQ(chosen_place(kLikely, 1e-9, 0.999), 0u);
  EXPECT_EQ(chosen_place(kLikely, 0.5, 0.999), 0u);  // the first alone has it
  // Two of 0.75 together: their shares become 2/3 and 1/3.
  EXPECT_EQ(chosen_place(kLikely, 0.51, 0.999), 1u);
  EXPECT_EQ(chosen_place(kLikely, 0.75, 0.66), 0u);
  EXPECT_EQ(chosen_place(kLikely, 0.75, 0.67), 1u);
  EXPECT_EQ(chosen_place(kLikely, 0.76, 0.999), 2u);
}

TEST(ChosenPlace, RoundingNeverLeadsBeyondTheLast) {
  const std::vector<double> sums_to_less(10, 0.0999);
  EXPECT_EQ(chosen_place(sums_to_less, 1, 0.9999999), 9u);
  EXPECT_EQ(chosen_place(sums_to_less, 0.9999, 0.9999999), 9u);
  EXPECT_EQ(chosen_place(std::vector<double>{1.0}, 0.5, 0.9), 0u);
}

}  // namespace
}  // namespace braid::train::token_choice_test
