// Reads a regular file line by line, with a limit on the length of a line.
// The file is opened by CheckedFile, so that a pipe is refused and never waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"

namespace braid {

// A line that is longer than its reader's limit. The offset is the byte it begins at.
class LongLine : public IoError {
 public:
  using IoError::IoError;
};

class LineReader {
 public:
  // `line_limit` is in bytes. Throws IoError as CheckedFile does.
  LineReader(std::string path, Links links, int64_t line_limit = int64_t{16} << 20);

  const std::string& path() const { return file_.path(); }
  // The next line is the one that begins at byte `offset`.
  void seek(int64_t offset);
  // The byte of the file behind what was read last.
  int64_t offset() const { return num_read_ - std::ssize(buffer_) + static_cast<int64_t>(at_); }
  // Reads the next line into `line`, without its "\n"; the last one may lack it. Returns false at the end of the file,
  // as long as it was when it was opened. Throws LongLine.
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
