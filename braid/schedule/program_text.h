// Programs as words, in PyTorch's notation. A word is one action, 0F3, or a fused pair, (0F7;7B3)OVERLAP_F_B.
#pragma once

#include <string>
#include <string_view>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// The word that begins at program[index]; a pair when a pair begins there.
std::string word_at(const Program& program, size_t index);

// All words, separated by blanks. Linear, and no more than a copy at a time: programs may have millions of actions.
std::string text(const Program& program);

// Reads one word: one action, or the two of a pair, the first marked. Throws ConfigError naming what it could not read.
Program parse_word(std::string_view word);

}  // namespace braid::schedule
