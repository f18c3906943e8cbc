// The system's words, and the free space where it ran out.
#include "braid/base/system_fault.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {

void throw_system_fault(const std::string& path, const std::string& action, std::error_code code) {
  std::string why = cat("cannot ", action, ": ", code.message());
  struct statvfs space {};
  if (code == std::errc::no_space_on_device && ::statvfs(parent_folder(path).c_str(), &space) == 0) {
    why += cat(" (", human_bytes(static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize)), " free)");
  }
  throw IoError(path, -1, why);
}

void throw_system_fault(const std::string& path, const std::string& action) {
  throw_system_fault(path, action, std::error_code(errno, std::generic_category()));
}

std::string parent_folder(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace braid
