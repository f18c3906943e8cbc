// Enums whose values have names in a configuration. Beside such an enum stands words(), the names in the order of its
// values, which start at 0:
//
//     enum class Colour { Red, Green };
//     constexpr auto words(Colour) { return std::to_array<std::string_view>({"red", "green"}); }
//
// A nested namespace with such enums says `using braid::operator<<;`, so that they print as their names.
#pragma once

#include <array>
#include <optional>
#include <ostream>
#include <string_view>

namespace braid {

template <class Enum>
inline constexpr auto kWords = words(Enum{});

// The name of a value.
template <class Enum>
constexpr std::string_view word(Enum value) {
  return kWords<Enum>[static_cast<size_t>(value)];
}

// The value of that name; nothing when none has it.
template <class Enum>
constexpr std::optional<Enum> value_of(std::string_view name) {
  for (size_t i = 0; i < kWords<Enum>.size(); ++i) {
    if (kWords<Enum>[i] == name) return static_cast<Enum>(i);
  }
  return {};
}

// As its name.
template <class Enum>
requires requires { words(Enum{}); }
std::ostream& operator<<(std::ostream& out, Enum value) { return out << word(value); }

}  // namespace braid
