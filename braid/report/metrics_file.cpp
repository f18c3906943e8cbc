// Appending lines. It does not look inside them.
#include "braid/report/metrics_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "braid/base/errors.h"

namespace braid::report {

MetricsFile::MetricsFile(std::string path) : path_(std::move(path)), file_(open_to_append(path_)) {
  if (std::fseek(file_.get(), 0, SEEK_END) != 0) fail(-1);
  if (std::ftell(file_.get()) == 0) return;
  if (std::fseek(file_.get(), -1, SEEK_END) != 0) fail(-1);
  const bool whole = std::fgetc(file_.get()) == '\n';
  std::fseek(file_.get(), 0, SEEK_END);
  if (!whole) std::fputc('\n', file_.get());
}

void MetricsFile::write(const MetricsLine& line) {
  struct stat about {};
  if (::fstat(::fileno(file_.get()), &about) == 0 && about.st_nlink == 0) {
    throw IoError(path_, -1, "was removed while it was written; what would be added to it is lost");
  }
  const std::string text = line.text() + "\n";
  const int64_t offset = std::ftell(file_.get());
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) fail(offset);
  if (std::fflush(file_.get()) != 0) fail(offset);
}

void MetricsFile::fail(int64_t offset) const { throw IoError(path_, offset, std::strerror(errno)); }

}  // namespace braid::report
