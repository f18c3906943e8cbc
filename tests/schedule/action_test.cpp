// The text form of actions, both ways.
#include "braid/schedule/action.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"

namespace braid::schedule::action_test {
namespace {

std::string fault_of(std::string_view word) {
  try {
    parse_action(word);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Action, TextIsPyTorchs) {
  EXPECT_EQ(braid::text({Op::Forward, 0, 3}), "0F3");
  EXPECT_EQ(braid::text({Op::FullBackward, 12, 0}), "12B0");
  EXPECT_EQ(braid::text({Op::InputGrad, 1, 2}), "1I2");
  EXPECT_EQ(braid::text({Op::WeightGrad, 1, 2}), "1W2");
  EXPECT_EQ(braid::text({Op::SendForward, 0, 10}), "0SEND_F10");
  EXPECT_EQ(braid::text({Op::RecvBackward, 7, 1}), "7RECV_B1");
  EXPECT_EQ(braid::text({Op::ReduceGrad, 3, -1}), "3REDUCE_GRAD");
  EXPECT_EQ(braid::text({Op::Unshard, 3, -1}), "3UNSHARD");
  EXPECT_EQ(braid::text({Op::Update, 3, 5}), "3UPDATE5");
}

TEST(Action, ReadsWhatItWrites) {
  for (int number = 0; number < kNumOps; ++number) {
    const Op op = static_cast<Op>(number);
    for (int stage : {0, 1, 10, 4095}) {
      for (int micro : {0, 9, 123456}) {
        const Action action{op, stage, of_whole_stage(op) ? -1 : micro};
        EXPECT_EQ(parse_action(braid::text(action)), action) << braid::text(action);
      }
    }
  }
}

TEST(Action, FaultsNameTheWord) {
  for (const char* word : {"", "F0", "0F", "00", "0", "x", "0REDUCE_GRAD1", "0F-1", "0F0 ", "0F99999999999", "-1F0",
                           "(0F7;7B3)OVERLAP_F_B", "0f0"}) {
    EXPECT_NE(fault_of(word), "") << word;
    EXPECT_NE(fault_of(word).find(word), std::string::npos) << fault_of(word);
  }
  EXPECT_NE(fault_of("0SEN_F1").find("nearest valid is SEND_F"), std::string::npos) << fault_of("0SEN_F1");
}

}  // namespace
}  // namespace braid::schedule::action_test
