// Checks a folder by stat(2), access(2) and statfs(2).
#include "braid/disk/folder_problems.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "braid/base/text.h"

namespace braid::disk {

std::vector<Problem> folder_problems(const std::string& folder, int64_t bytes, const std::string& key) {
  const auto problem = [&](const std::string& rule) { return Problem{key, folder, rule, ""}; };
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return {problem(cat("must exist: ", std::strerror(errno)))};
  if (!S_ISDIR(about.st_mode)) return {problem("must be a folder")};
  std::vector<Problem> found;
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    found.push_back(problem(cat("must be writable: ", std::strerror(errno))));
  }
  struct statfs system {};
  if (::statfs(folder.c_str(), &system) != 0) {
    found.push_back(problem(cat("must be on a file system: ", std::strerror(errno))));
    return found;
  }
  if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) {
    found.push_back(problem("must be on a disk; this folder is in memory (tmpfs)"));
  }
  const int64_t free = static_cast<int64_t>(system.f_bavail) * static_cast<int64_t>(system.f_bsize);
  if (free < bytes) {
    found.push_back(problem(cat("needs ", human_bytes(static_cast<double>(bytes)), " of free space; it has ",
                                human_bytes(static_cast<double>(free)))));
  }
  return found;
}

}  // namespace braid::disk
