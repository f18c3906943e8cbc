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

// Taking back what metrics.jsonl says of steps that a run goes back behind. It knows which keys of a line say a step
// (docs/metrics_format.md) and nothing else of what is in it.

// Lines taken out of the file.
struct CutLines {
  int64_t later = 0;       // of later steps, and lines between them that name no step
  int64_t unreadable = 0;  // no JSON object: a run died while it wrote
  bool operator==(const CutLines&) const = default;
};

// Leaves the lines that were true after `last_step` steps, byte for byte; CutLines says which lines go. The file is
// replaced by a whole one that is durable, or left as it is; one that would not change is not touched, and one that is
// not there stays away. Throws IoError.
CutLines cut_metrics(const std::string& path, int64_t last_step, FileSystem& files);

// "took 3 lines out of metrics.jsonl: 2 of steps after 4, 1 unreadable"; empty when no line went.
std::string sentence(const CutLines& cut, int64_t last_step);

// Returns the name of the file that an interrupted cut leaves beside `path`.
std::string cut_metrics_name(const std::string& path);

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
