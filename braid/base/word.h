// Enums whose values have names in a configuration. Such an enum has a function words(), which returns the names in the
// order of the values. The values start at 0:
//
//     enum class Colour { Red, Green };
//     constexpr auto words(Colour) { return std::to_array<std::string_view>({"red", "green"}); }
//
// A nested namespace with such enums needs `using braid::operator<<;` to print them as their names.
#pragma once

#include <array>
#include <optional>
#include <ostream>
#include <string_view>

namespace braid {

template <class Enum>
inline constexpr auto kWords = words(Enum{});

// Returns the name of a value.
template <class Enum>
constexpr std::string_view word(Enum value) {
  return kWords<Enum>[static_cast<size_t>(value)];
}

// Returns the value with that name, or nothing if there is none.
template <class Enum>
constexpr std::optional<Enum> value_of(std::string_view name) {
  for (size_t i = 0; i < kWords<Enum>.size(); ++i) {
    if (kWords<Enum>[i] == name) return static_cast<Enum>(i);
  }
  return {};
}

// Prints the value's name.
template <class Enum>
requires requires { words(Enum{}); }
std::ostream& operator<<(std::ostream& out, Enum value) { return out << word(value); }

}  // namespace braid
