// JSON by hand: numbers and strings are all there is, and the number format is ours to promise.
#include "braid/report/metrics_line.h"

#include <cmath>

#include "braid/base/text.h"

namespace braid::report {
namespace {

std::string json(double value) {
  if (!std::isfinite(value)) return "null";
  std::string digits = exact(value);
  // A bare "-0" or "5" would read back as an integer, and -0 would lose its sign.
  if (digits.find_first_of(".e") == digits.npos) digits += ".0";
  return digits;
}

std::string json(int value) { return std::to_string(value); }

std::string json(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20) {
      quoted += "\\u00";
      quoted += kHex[byte >> 4];
      quoted += kHex[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted += '"';
}

template <class Values>
std::string json_list(const Values& values) {
  std::string list = "[";
  for (const auto& value : values) {
    if (list.size() > 1) list += ',';
    list += json(value);
  }
  return list += ']';
}

}  // namespace

MetricsLine& MetricsLine::put(std::string_view key, std::string_view value) {
  if (!fields_.empty()) fields_ += ',';
  fields_ += json(key);
  fields_ += ':';
  fields_ += value;
  return *this;
}

MetricsLine& MetricsLine::add(std::string_view key, double value) { return put(key, json(value)); }
MetricsLine& MetricsLine::add(std::string_view key, std::string_view value) { return put(key, json(value)); }
MetricsLine& MetricsLine::add(std::string_view key, const std::vector<double>& values) {
  return put(key, json_list(values));
}
MetricsLine& MetricsLine::add(std::string_view key, const std::vector<int>& values) {
  return put(key, json_list(values));
}
MetricsLine& MetricsLine::add(std::string_view key, const std::vector<std::string>& values) {
  return put(key, json_list(values));
}
MetricsLine& MetricsLine::add(std::string_view key, const std::map<std::string, double>& object) {
  MetricsLine line;
  for (const auto& [name, value] : object) line.add(name, value);
  return add(key, line);
}
MetricsLine& MetricsLine::add(std::string_view key, const MetricsLine& object) { return put(key, object.text()); }

}  // namespace braid::report
