// The conversion of programs to words and back. Each action of a pair has the text form of action.h.
#include "braid/schedule/program_text.h"

#include "braid/base/errors.h"

namespace braid::schedule {
namespace {

constexpr std::string_view kPairEnd = ")OVERLAP_F_B";

// Appends the word and returns where the next one begins.
size_t append_word(std::string& words, const Program& program, size_t index) {
  if (!pair_begins(program, index)) {
    append_text(words, program[index]);
    return index + 1;
  }
  words += '(';
  append_text(words, program[index]);
  words += ';';
  append_text(words, program[index + 1]);
  words += kPairEnd;
  return index + 2;
}

}  // namespace

std::string word_at(const Program& program, size_t index) {
  std::string word;
  append_word(word, program, index);
  return word;
}

std::string text(const Program& program) {
  constexpr size_t kTypical = 10;  // characters of a word and its blank
  std::string words;
  words.reserve(kTypical * program.size());
  for (size_t index = 0; index < program.size();) {
    if (index > 0) words += ' ';
    index = append_word(words, program, index);
  }
  return words;
}

Program parse_word(std::string_view word) {
  if (!word.starts_with('(')) return {parse_action(word)};
  const auto refuse = [&](const char* rule) { throw ConfigError({{"action", std::string(word), rule, ""}}); };
  const size_t middle = word.find(';');
  if (!word.ends_with(kPairEnd) || middle == word.npos) {
    refuse("must be two fused actions, as in (0F7;7B3)OVERLAP_F_B");
  }
  Program pair = {parse_action(word.substr(1, middle - 1)),
                  parse_action(word.substr(middle + 1, word.size() - kPairEnd.size() - middle - 1))};
  pair[0].fusion = Fusion::WithNext;
  if (!pair_begins(pair, 0)) refuse("must fuse a forward and then a backward (B or I)");
  return pair;
}

}  // namespace braid::schedule
