// One line of metrics as JSON.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace braid::report {

// An ordered JSON object on one line. Numbers are in full precision: a double reads back bit for bit, except that NaN
// and infinities become null, which JSON has instead. Text and keys are UTF-8.
class MetricsLine {
 public:
  MetricsLine& add(std::string_view key, double value);
  MetricsLine& add(std::string_view key, std::string_view value);
  MetricsLine& add(std::string_view key, const std::vector<double>& values);
  MetricsLine& add(std::string_view key, const std::vector<int>& values);
  MetricsLine& add(std::string_view key, const std::vector<std::string>& values);
  MetricsLine& add(std::string_view key, const MetricsLine& object);
  MetricsLine& add(std::string_view key, const std::map<std::string, double>& object);
  template <std::integral Integer>
  MetricsLine& add(std::string_view key, Integer value) {
    if constexpr (std::same_as<Integer, bool>) return put(key, value ? "true" : "false");
    return put(key, std::to_string(value));
  }

  // {"step":3,"loss":2.5}, with no newline.
  std::string text() const { return "{" + fields_ + "}"; }

 private:
  MetricsLine& put(std::string_view key, std::string_view json);

  std::string fields_;
};

}  // namespace braid::report
