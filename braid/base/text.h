// Strings made of values, counts with their nouns, and the nearest of several words.
// fmt is not used: the LibTorch wheel carries headers of another version than the system's.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

// The values one after another, as operator<< writes them.
template <class... Values>
std::string cat(const Values&... values) {
  std::ostringstream out;
  (out << ... << values);
  return out.str();
}

// `value` with `digits` decimals: fixed(2.5, 2) == "2.50".
std::string fixed(double value, int digits);

// The shortest decimal that reads back as `value`.
std::string exact(double value);

// 1536 -> "1.5 KiB".
std::string human_bytes(double bytes);

// "a, b, c".
std::string joined(const std::vector<std::string>& parts, std::string_view separator = ", ");

// Text that somebody else has written (a name, a value, bytes of a file), to be shown on a terminal: control characters
// and bytes that are no UTF-8 become escapes (\n, \x1b), so that it cannot steer the terminal and no NUL cuts it short.
// Text of more than `most` bytes is cut there, with its length behind it. Other text is left as it is.
enum class LineBreaks { Escaped, Kept };
std::string printable(std::string_view text, size_t most, LineBreaks breaks = LineBreaks::Escaped);

// Converts ASCII letters; others stay.
std::string lower_case(std::string_view text);

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string alignment).
int edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest edit distance to `word`, upper and lower case being the same, or "" when none is
// within half of the word's length. A word far longer than all candidates costs little time.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// Counts in messages: "1 rank", "2 ranks", "3 batches".

// The plural of an English noun of regular form.
inline std::string plural(std::string_view noun) {
  const bool hisses = noun.ends_with("ch") || noun.ends_with('s') || noun.ends_with('x');
  return cat(noun, hisses ? "es" : "s");
}

// `noun`, or its plural unless the count is one.
template <class Number>
std::string noun_of(Number count, std::string_view noun) {
  return count == 1 ? std::string(noun) : plural(noun);
}

// The count and its noun.
template <class Number>
std::string counted(Number count, std::string_view noun) {
  return cat(count, " ", noun_of(count, noun));
}

}  // namespace braid
