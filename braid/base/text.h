// Builds strings from values, formats counts with their nouns, and finds the nearest of several words. fmt is not used:
// the LibTorch wheel carries headers of another version than the system's.
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

// Returns the values one after another, as operator<< writes them.
template <class... Values>
std::string cat(const Values&... values) {
  std::ostringstream out;
  (out << ... << values);
  return out.str();
}

// Returns `value` with `digits` decimals: fixed(2.5, 2) == "2.50".
std::string fixed(double value, int digits);

// Returns the shortest decimal that reads back as `value`.
std::string exact(double value);

// Returns a size in the fitting unit: 1536 -> "1.5 KiB".
std::string human_bytes(double bytes);

// Returns the parts with the separator between them: "a, b, c".
std::string joined(const std::vector<std::string>& parts, std::string_view separator = ", ");

// Returns the text as a basic string of TOML, which is one of JSON too: in quotes, control characters as escapes.
std::string quoted_text(std::string_view text);

// printable() makes text from outside (a name, a value, bytes of a file) safe to show on a terminal. Control characters
// and bytes that are not UTF-8 become escapes (\n, \x1b), so the text cannot steer the terminal and no NUL cuts it
// short. Text of more than `most` bytes is cut there, and its length is appended. Other text is unchanged.
enum class LineBreaks { Escaped, Kept };
std::string printable(std::string_view text, size_t most, LineBreaks breaks = LineBreaks::Escaped);

// Converts ASCII letters to lower case; other characters stay.
std::string lower_case(std::string_view text);

// Returns the number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal
// string alignment).
int edit_distance(std::string_view a, std::string_view b);

// Returns the candidate with the smallest edit distance to `word`, ignoring case, or "" if none is within half of the
// word's length. A word far longer than all candidates costs little time.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// Returns the plural of an English noun of regular form.
inline std::string plural(std::string_view noun) {
  const bool hisses = noun.ends_with("ch") || noun.ends_with('s') || noun.ends_with('x');
  return cat(noun, hisses ? "es" : "s");
}

// Returns `noun` if the count is one, else its plural.
template <class Number>
std::string noun_of(Number count, std::string_view noun) {
  return count == 1 ? std::string(noun) : plural(noun);
}

// Returns the count and its noun: "1 rank", "2 ranks", "3 batches".
template <class Number>
std::string counted(Number count, std::string_view noun) {
  return cat(count, " ", noun_of(count, noun));
}

}  // namespace braid
