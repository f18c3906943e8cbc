// Writes a small file whole, and opens files for appending. No function follows a link that somebody planted.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "braid/base/file_system.h"

namespace braid {

// Writes PATH.tmp, syncs it and renames it to `path`: readers find the old file or the new one, also after a crash. A
// link at `path` is replaced, not followed. On failure the old file stays and PATH.tmp is removed; a killed process
// leaves PATH.tmp, which the next call removes. Throws IoError.
void write_file(const std::string& path, const std::string& content, FileSystem& files);
void write_file(const std::string& path, const std::string& content);

// The same for a path that the user typed. The temporary file has a name of its own, so that no file of the user is
// lost; the next call removes what a killed process left under such a name. A path that is_written_in_place() is opened
// and written as it is: a regular file is written over, to all else `content` is appended. Throws IoError.
void write_named_file(const std::string& path, const std::string& content);
// True for a pipe, a device, a socket, and a name of an open descriptor (/dev/stdout), whatever that leads to. True
// also for a file that cannot be replaced by another: a mount point, or one in a folder where no file can be made.
bool is_written_in_place(const std::string& path);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using AppendedFile = std::unique_ptr<std::FILE, CloseFile>;

// Opens `path` to be read and appended to (O_APPEND), and creates it if it is missing. Throws IoError if it is a link
// or no regular file.
AppendedFile open_to_append(const std::string& path);

}  // namespace braid
