// A file of metrics, one JSON object per line, that survives a crash and a resume.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/file_system.h"
#include "braid/base/output_file.h"

namespace braid::report {

// The number of lines removed from the file.
struct CutLines {
  int64_t later = 0;       // lines of later steps, and lines between these that name no step
  int64_t unreadable = 0;  // lines that are no JSON object: a run died while it wrote
  bool operator==(const CutLines&) const = default;
};

// Removes the lines about steps after `last_step`, and unreadable lines; the others stay byte for byte. The keys "step"
// and "first_step" give a line's step (docs/metrics_format.md). The file is either replaced atomically and durably or
// left as it is. A file without such lines is not touched; a missing one is not created. Throws IoError.
CutLines cut_metrics(const std::string& path, int64_t last_step, FileSystem& files);

// Returns "took 3 lines out of metrics.jsonl: 2 of steps after 4, 1 unreadable"; empty if no line was removed.
std::string sentence(const CutLines& cut, int64_t last_step);

// Returns the name of the temporary file that an interrupted cut_metrics() leaves beside `path`.
std::string cut_metrics_name(const std::string& path);

// One line of metrics: an ordered JSON object. Numbers have full precision: a double reads back bit for bit. NaN and
// infinities become null, because JSON lacks them. Text and keys are UTF-8.
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

  // Returns {"step":3,"loss":2.5}, without a newline.
  std::string text() const { return "{" + fields_ + "}"; }

 private:
  MetricsLine& put(std::string_view key, std::string_view json);

  std::string fields_;
};

// A file to which lines are appended. Every line is passed to the operating system before write() returns. If an
// earlier run died in the middle of a line, the first write begins a new line. Not thread-safe.
class MetricsFile {
 public:
  // Opens the file, and creates it if it is missing. Its folder must exist. Throws IoError.
  explicit MetricsFile(std::string path);

  // Throws IoError with the offset at which the line was to be written. Also throws if the file has been removed from
  // its folder.
  void write(const MetricsLine& line);

  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail(int64_t offset) const;

  std::string path_;
  AppendedFile file_;
};

}  // namespace braid::report
