// A file of metrics, one JSON object per line, that survives a crash and a resume.
#pragma once

#include <cstdio>
#include <string>

#include "braid/base/output_file.h"
#include "braid/report/metrics_line.h"

namespace braid::report {

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
