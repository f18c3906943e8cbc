// Reading a small file whole.
#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {

// Throws ConfigError under `key`, the option that names the file: a wrong name is the user's mistake. So is what has no
// end, or more than a small file's bytes.
inline std::string read_named_file(const std::string& key, const std::string& path) {
  constexpr size_t kMostBytes = size_t{1} << 28, kPiece = size_t{1} << 16;
  const auto refuse = [&](const std::string& rule) { throw ConfigError({{key, path, rule, ""}}); };
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) refuse("is a folder, and must be a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(cat("cannot be read: ", std::strerror(errno)));
  std::string content, piece(kPiece, '\0');
  while (file.read(piece.data(), kPiece), file.gcount() > 0) {
    content.append(piece, 0, static_cast<size_t>(file.gcount()));
    if (content.size() > kMostBytes) refuse(cat("has more than ", human_bytes(kMostBytes)));
  }
  if (file.bad()) refuse("cannot be read");
  return content;
}

}  // namespace braid
