// Writing a small file whole, in its place or in the place of another.
#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "braid/base/errors.h"
#include "braid/base/file_system.h"

namespace braid {

// Replaces what was there. Throws IoError.
inline void write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) throw IoError(path, -1, std::string("cannot be written: ") + std::strerror(errno));
}

// The same at one stroke: whoever reads `path` finds what it was or what it becomes, after a crash too. What a stroke
// that was stopped leaves is PATH.tmp, which the next one removes. Throws IoError.
inline void replace_file(const std::string& path, const std::string& content, FileSystem& files) {
  const std::string written = path + ".tmp", folder = std::filesystem::path(path).parent_path();
  files.remove_all(written);
  const auto file = files.create(written);
  file->append(std::as_bytes(std::span(content)));
  file->sync();
  file->close();
  files.replace(written, path);
  files.sync_directory(folder.empty() ? "." : folder);
}

}  // namespace braid
