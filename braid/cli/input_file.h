// Reading a small file whole.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "braid/base/errors.h"

namespace braid {

// Throws ConfigError under `key`, the option that names the file: a wrong name is the user's mistake.
inline std::string read_named_file(const std::string& key, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) throw ConfigError({{key, path, "cannot be read", ""}});
  return content.str();
}

}  // namespace braid
