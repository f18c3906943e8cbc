// A bound, and the reason in the user's terms.
#include "braid/base/named_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/system_fault.h"
#include "braid/base/text.h"

namespace braid {
namespace {

std::string pipe_content(const std::string& path, int64_t limit) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw_system_fault(path, "open");
  std::string text, block(1 << 16, '\0');
  ssize_t got = 0;
  do {
    got = ::read(descriptor, block.data(), block.size());
    if (got > 0) text.append(block, 0, static_cast<size_t>(got));
  } while ((got > 0 && std::ssize(text) <= limit) || (got < 0 && errno == EINTR));
  const std::error_code fault(errno, std::generic_category());
  ::close(descriptor);
  if (got < 0) throw_system_fault(path, "read", fault);
  if (std::ssize(text) > limit)
    throw IoError(path, limit, cat("is a pipe that goes on; at most ", limit, " bytes are read"));
  return text;
}

}  // namespace

std::string named_content(const std::string& path, int64_t limit) {
  struct stat about {};
  const bool is_pipe = ::stat(path.c_str(), &about) == 0 && S_ISFIFO(about.st_mode);
  return is_pipe ? pipe_content(path, limit) : file_content(path, limit);
}

std::string named_file_content(const NamedFile& file, int64_t limit) {
  try {
    return named_content(file.path, limit);
  } catch (const IoError& error) {
    throw ConfigError({{file.key, file.value, cat("cannot be read (", error.what(), ")"), ""}});
  }
}

}  // namespace braid
