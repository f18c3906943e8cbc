// Reads a regular file line by line, with a limit on the length of a line. CheckedFile opens the file: it refuses a
// pipe instead of waiting for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"

namespace braid {

// The error for a line that is longer than the reader's limit. Its offset is the byte where the line begins.
class LongLine : public IoError {
 public:
  using IoError::IoError;
};

class LineReader {
 public:
  // `line_limit` is in bytes. Throws IoError as CheckedFile does.
  LineReader(std::string path, Links links, int64_t line_limit = int64_t{16} << 20);

  const std::string& path() const { return file_.path(); }
  // Makes the line that begins at byte `offset` the next one.
  void seek(int64_t offset);
  // Returns the offset in the file after the last line read.
  int64_t offset() const { return num_read_ - std::ssize(buffer_) + static_cast<int64_t>(at_); }
  // Reads the next line into `line`, without its "\n". The last line may lack the "\n". Returns false at the end that
  // the file had when it was opened. Throws LongLine.
  bool next(std::string& line);

 private:
  bool fill();

  CheckedFile file_;
  int64_t line_limit_;
  std::string buffer_;
  size_t at_ = 0;         // position in buffer_
  int64_t num_read_ = 0;  // bytes read from the file so far
};

}  // namespace braid
