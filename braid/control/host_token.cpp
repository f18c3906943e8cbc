// The file is written under another name and linked to its own, so nobody reads half of it, and the first of several
// processes wins. Nobody removes it: another job may be about to read it.
#include "braid/control/host_token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::control {
namespace {

constexpr const char* kFileName = "token";

// Closed with its owner.
class OpenFolder {
 public:
  explicit OpenFolder(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {}
  ~OpenFolder() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// Why the folder may not be used; empty when it may.
std::string folder_refusal(int descriptor) {
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) return cat("cannot be opened: ", std::strerror(errno));
  if (status.st_uid != ::geteuid()) return cat("belongs to user ", status.st_uid, ", not to user ", ::geteuid());
  if ((status.st_mode & 077) != 0) return "is open to other users";
  return "";
}

void make_token_file(const std::string& folder) {
  const SecretPage page;
  const auto digits = page.bytes().first<kTokenDigits>();
  draw_token_digits(digits);
  std::string path = folder + "/new.XXXXXX";
  const int descriptor = ::mkostemp(path.data(), O_CLOEXEC);  // O_EXCL, mode 0600
  if (descriptor < 0) throw IoError(path, -1, cat("cannot be made: ", std::strerror(errno)));
  const bool written = ::write(descriptor, digits.data(), digits.size()) == static_cast<ssize_t>(digits.size()) &&
                       ::fsync(descriptor) == 0;
  const bool there = written && (::link(path.c_str(), cat(folder, "/", kFileName).c_str()) == 0 || errno == EEXIST);
  const int error = errno;
  ::close(descriptor);
  ::unlink(path.c_str());
  if (!there) throw IoError(path, -1, cat("cannot be written: ", std::strerror(error)));
}

}  // namespace

std::string host_token_folder() { return cat("/tmp/braid-", ::geteuid()); }

JobToken token_of_host(const std::string& path) {
  ::mkdir(path.c_str(), 0700);  // a failure shows when it is opened
  const OpenFolder folder(path);
  const std::string fault = folder_refusal(folder.descriptor());
  if (!fault.empty()) {
    throw ConfigError(
        {{path, "", cat(fault, "; the token of jobs on this host would lie there: give --token-file"), ""}});
  }
  const auto opened = [&] {
    return ::openat(folder.descriptor(), kFileName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  };
  int descriptor = opened();
  if (descriptor < 0 && errno == ENOENT) {
    make_token_file(path);
    descriptor = opened();
  }
  const std::string file = cat(path, "/", kFileName);
  return token_of_descriptor(descriptor, {file, "", file});
}

}  // namespace braid::control
