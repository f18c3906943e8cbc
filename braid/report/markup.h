// Text pieces used by all pictures and pages.
#pragma once

#include <string>
#include <string_view>

namespace braid::report {

// Escapes text for the content of an element or a quoted attribute. Control characters are dropped; newlines become
// spaces.
std::string escaped(std::string_view text);

// Returns a coordinate with at most two decimals and no trailing zeros.
std::string coordinate(double value);

// Returns a fraction as a percentage, formatted as a coordinate: 0.125 -> "12.5%".
std::string percent(double share);

// Returns about three digits: 45210 -> "45.2k", 2345678 -> "2.35M", 950 -> "950", 0.0123 -> "0.0123".
std::string short_number(double value);

// Returns a rate with its unit: 9.04e10 -> "90.4 GFLOP/s".
std::string flops_text(double per_second);

// Returns a number with its digits grouped: 10834944 -> "10,834,944".
std::string grouped(int64_t value);

}  // namespace braid::report
