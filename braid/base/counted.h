// Counts in messages: "1 rank", "2 ranks", "3 batches".
#pragma once

#include <string>
#include <string_view>

#include "braid/base/text.h"

namespace braid {

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
