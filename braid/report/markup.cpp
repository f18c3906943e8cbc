// Escaping and number formats for HTML and SVG.
#include "braid/report/markup.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "braid/base/text.h"

namespace braid::report {

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&') {
      safe += "&amp;";
    } else if (c == '<') {
      safe += "&lt;";
    } else if (c == '>') {
      safe += "&gt;";
    } else if (c == '"') {
      safe += "&quot;";
    } else if (c == '\n' || c == '\t') {
      safe += ' ';
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      safe += c;
    }
  }
  return safe;
}

std::string coordinate(double value) {
  std::string digits = fixed(value, 2);
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

std::string percent(double share) { return coordinate(100 * share) + "%"; }

std::string short_number(double value) {
  constexpr std::array<const char*, 7> kUnits{"", "k", "M", "G", "T", "P", "E"};
  double size = std::abs(value);
  if (size != 0 && size < 1e-3) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.2e", value);
    return buffer;
  }
  size_t unit = 0;
  for (; size >= 1e4 || (unit > 0 && size >= 999.5); ++unit) {
    if (unit + 1 == kUnits.size()) break;
    size /= 1000;
  }
  if (unit == 0 && size >= 999.5) return fixed(value, 0);
  const int digits = size >= 100 ? (unit == 0 ? 1 : 0) : size >= 10 ? (unit == 0 ? 2 : 1) : unit == 0 ? 4 : 2;
  std::string text = fixed(std::copysign(size, value), digits);
  if (unit == 0 && text.find('.') != text.npos) {
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
  }
  return text + kUnits[unit];
}

std::string flops_text(double per_second) {
  const std::string number = short_number(per_second);
  const bool has_unit = number.find_first_not_of("-.0123456789e") != number.npos;
  const size_t split = has_unit ? number.size() - 1 : number.size();
  return cat(number.substr(0, split), " ", number.substr(split), "FLOP/s");
}

std::string grouped(int64_t value) {
  const std::string digits = cat(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace braid::report
