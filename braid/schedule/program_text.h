// Programs as text, in PyTorch's notation. A word is one action, 0F3, or a fused pair, (0F7;7B3)OVERLAP_F_B.
#pragma once

#include <string>
#include <string_view>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Returns the word that begins at program[index]: that of the fused pair if one begins there, else that of the action.
std::string word_at(const Program& program, size_t index);

// Returns all words, separated by blanks. Programs may have millions of actions: it takes linear time, and memory for
// at most one more copy of the text.
std::string text(const Program& program);

// Parses one word: an action, or the two actions of a fused pair, the first with its mark. Throws ConfigError naming
// the invalid part.
Program parse_word(std::string_view word);

}  // namespace braid::schedule
