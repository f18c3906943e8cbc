// Errors of calls to the system about a path.
#pragma once

#include <string>
#include <system_error>

namespace braid {

// Throws IoError: "cannot <action>: <the system's words>", with the free space where the disk is full.
[[noreturn]] void throw_system_fault(const std::string& path, const std::string& action, std::error_code code);
// The same of errno.
[[noreturn]] void throw_system_fault(const std::string& path, const std::string& action);

// The folder that `path` lies in; "." for a name alone.
std::string parent_folder(const std::string& path);

}  // namespace braid
