// Pieces that every picture and page is made of.
#pragma once

#include <string>
#include <string_view>

namespace braid::report {

// Safe as the content of an element and as a quoted attribute; control characters are dropped, newlines become spaces.
std::string escaped(std::string_view text);

// A coordinate: at most two decimals, no trailing zeros.
std::string coordinate(double value);

// A share of a whole as a percentage of such a coordinate: 0.125 -> "12.5%".
std::string percent(double share);

// 45210 -> "45.2k", 2345678 -> "2.35M", 950 -> "950", 0.0123 -> "0.0123": three digits or a little more.
std::string short_number(double value);

// 9.04e10 -> "90.4 GFLOP/s".
std::string flops_text(double per_second);

// 10834944 -> "10,834,944".
std::string grouped(int64_t value);

}  // namespace braid::report
