// Words of programs: single actions, fused pairs, and marks that fuse nothing.
#include "braid/schedule/program_text.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"

namespace braid::schedule::program_text_test {
namespace {

const Program kProgram = {{Op::Forward, 0, 6},      {Op::Forward, 0, 7, Fusion::WithNext},
                          {Op::FullBackward, 7, 3}, {Op::Forward, 7, 4, Fusion::WithNext},
                          {Op::InputGrad, 0, 0},    {Op::ReduceGrad, 0, -1}};

TEST(ProgramText, APairIsOneWord) {
  EXPECT_EQ(text(kProgram), "0F6 (0F7;7B3)OVERLAP_F_B (7F4;0I0)OVERLAP_F_B 0REDUCE_GRAD");
  EXPECT_EQ(word_at(kProgram, 1), "(0F7;7B3)OVERLAP_F_B");
  EXPECT_EQ(word_at(kProgram, 2), "7B3");
  EXPECT_EQ(text(Program{}), "");
}

TEST(ProgramText, AMarkThatFusesNothingHasNoPair) {
  EXPECT_EQ(text(Program{{Op::Forward, 0, 0, Fusion::WithNext}}), "0F0");
  EXPECT_EQ(text(Program{{Op::Forward, 0, 0, Fusion::WithNext}, {Op::Forward, 0, 1}}), "0F0 0F1");
  EXPECT_EQ(text(Program{{Op::FullBackward, 0, 0, Fusion::WithNext}, {Op::FullBackward, 0, 1}}), "0B0 0B1");
}

TEST(ProgramText, ReadsWhatItWrites) {
  Program read;
  for (size_t i = 0; i < kProgram.size(); ++i) {
    if (pair_ends(kProgram, i)) continue;
    for (const Action& action : parse_word(word_at(kProgram, i))) read.push_back(action);
  }
  EXPECT_EQ(read, kProgram);
}

TEST(ProgramText, FaultsNameTheWord) {
  for (const char* word :
       {"", "(", "()", "(0F7;7B3)", "(0F7)OVERLAP_F_B", "(7B3;0F7)OVERLAP_F_B", "(0F7;7W3)OVERLAP_F_B",
        "(;)OVERLAP_F_B", ";)OVERLAP_F_B", "(0F7;7B3)OVERLAP_F_Bx", "(0F7;7B3;0F8)OVERLAP_F_B"}) {
    try {
      parse_word(word);
      ADD_FAILURE() << word;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.problems().size(), 1u) << word;
    }
  }
}

}  // namespace
}  // namespace braid::schedule::program_text_test
