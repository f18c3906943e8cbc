// Queries about paths. Each function returns an answer or throws IoError with the system's reason: no permission, a
// cycle of links, a name that is too long. Links are followed unless the function's comment says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

enum class PathKind { Nothing, File, Folder, Other };  // Other: a pipe, a device, a socket

PathKind path_kind(const std::string& path);
// Returns true if the path itself is a link; false if nothing is there.
bool is_link(const std::string& path);

// Returns the names in a folder, sorted as bytes.
std::vector<std::string> names_in(const std::string& folder);

// Returns the path without links, "." and "..", as far as it exists. The result is equal for two paths to the same
// place.
std::string resolved_path(const std::string& path);

int64_t file_bytes(const std::string& file);
// Returns the time of the last change of a file's content, in units of the file system. Use it only for comparison.
int64_t change_time(const std::string& file);

}  // namespace braid
