// Writing a small file whole.
#pragma once

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "braid/base/errors.h"

namespace braid {

// Replaces what was there. Throws IoError.
inline void write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) throw IoError(path, -1, std::string("cannot be written: ") + std::strerror(errno));
}

}  // namespace braid
