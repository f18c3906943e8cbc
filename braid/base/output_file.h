// Writes small files atomically, and opens files for appending. No function follows a link that another user planted.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "braid/base/file_system.h"

namespace braid {

// Writes PATH.tmp, syncs it and renames it to `path`: readers find the old file or the new one, also after a crash. A
// link at `path` is replaced, not followed. On failure the old file stays and PATH.tmp is removed. A killed process
// leaves PATH.tmp, which the next call removes. Throws IoError.
void write_file(const std::string& path, const std::string& content, FileSystem& files);
void write_file(const std::string& path, const std::string& content);
// Returns PATH.tmp, the name under which write_file() writes.
std::string half_written_name(const std::string& path);

// Same as write_file(), for a path that the user typed. The temporary file has a name that no file of the user has. The
// next call removes a temporary file that a killed process left. A path for which is_written_in_place() is true is
// written directly: a regular file is overwritten, and `content` is appended to anything else. Throws IoError.
void write_named_file(const std::string& path, const std::string& content);
// Returns true for a pipe, a device, a socket, and a name of an open descriptor (/dev/stdout), whatever the descriptor
// leads to. Also returns true for a file that cannot be replaced: a mount point, or a file in a folder where no file
// can be created.
bool is_written_in_place(const std::string& path);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using AppendedFile = std::unique_ptr<std::FILE, CloseFile>;

// Opens `path` for reading and appending (O_APPEND), and creates it if it is missing. Throws IoError if it is a link or
// not a regular file.
AppendedFile open_to_append(const std::string& path);

}  // namespace braid
