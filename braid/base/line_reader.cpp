// Reads a file in blocks and splits them at line breaks.
#include "braid/base/line_reader.h"

#include <algorithm>
#include <span>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {

LineReader::LineReader(std::string path, Links links, int64_t line_limit)
    : file_(std::move(path), links), line_limit_(line_limit) {}

bool LineReader::fill() {
  constexpr int64_t kBlockBytes = 1 << 20;
  buffer_.resize(static_cast<size_t>(std::min(kBlockBytes, file_.bytes() - num_read_)));
  at_ = 0;
  file_.read(num_read_, std::as_writable_bytes(std::span(buffer_)));
  num_read_ += std::ssize(buffer_);
  return !buffer_.empty();
}

void LineReader::seek(int64_t offset) {
  buffer_.clear();
  at_ = 0;
  num_read_ = std::min(offset, file_.bytes());
}

bool LineReader::next(std::string& line) {
  line.clear();
  const int64_t begin = offset();
  while (at_ < buffer_.size() || fill()) {
    const size_t end = buffer_.find('\n', at_);
    line.append(buffer_, at_, end - at_);
    if (std::ssize(line) > line_limit_) {
      throw LongLine(path(), begin, cat("a line begins here that has more than ", line_limit_, " bytes"));
    }
    at_ = end == buffer_.npos ? buffer_.size() : end + 1;
    if (end != buffer_.npos) return true;
  }
  return !line.empty();
}

}  // namespace braid
