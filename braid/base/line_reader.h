// Reads a regular file line by line, with a limit on the length of a line.
// The file is opened by CheckedFile, so that a pipe is refused and never waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "braid/base/checked_file.h"

namespace braid {

class LineReader {
 public:
  // `line_limit` is in bytes. Throws IoError as CheckedFile does.
  LineReader(std::string path, Links links, int64_t line_limit = int64_t{16} << 20);

  const std::string& path() const { return file_.path(); }
  // Reads the next line into `line`, without its "\n"; the last one may lack it. Returns false at the end of the file,
  // as long as it was when it was opened. Throws IoError for a line above the limit, naming the byte it begins at.
  bool next(std::string& line);

 private:
  bool fill();

  CheckedFile file_;
  int64_t line_limit_;
  std::string buffer_;
  size_t at_ = 0;         // in the buffer
  int64_t num_read_ = 0;  // bytes of the file
};

}  // namespace braid
