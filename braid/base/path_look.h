// Questions about paths. Each function answers or throws IoError with the system's reason: no permission, links in a
// circle, a name that is too long. Links are followed unless it says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

enum class PathKind { Nothing, File, Folder, Other };  // Other: a pipe, a device, a socket

PathKind path_kind(const std::string& path);
// Returns true if the path itself is a link; false if nothing is there.
bool is_link(const std::string& path);

// The names in a folder, sorted as bytes.
std::vector<std::string> names_in(const std::string& folder);

// The path without links, "." and "..", as far as it exists: equal for two paths to the same place.
std::string resolved_path(const std::string& path);

int64_t file_bytes(const std::string& file);
// When a file's content last changed, in the file system's own count: only good to be compared.
int64_t change_time(const std::string& file);

}  // namespace braid
