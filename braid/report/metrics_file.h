// A file of metrics, one JSON object per line, that survives a crash and a resume.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/output_file.h"

namespace braid::report {

// One line of metrics as JSON.

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

// Appends. Every line is handed to the operating system before write() returns. If an earlier run died in the middle of
// a line, the first write begins on a new one. One thread at a time.
class MetricsFile {
 public:
  // Creates the file when it is not there; its folder must exist. Throws IoError.
  explicit MetricsFile(std::string path);

  // Throws IoError, with the offset at which the line was to go; also when the file is no longer in any folder.
  void write(const MetricsLine& line);

  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(int64_t offset) const;

  std::string path_;
  AppendedFile file_;
};

}  // namespace braid::report
