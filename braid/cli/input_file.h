// Reading a small file whole.
#pragma once

#include <string>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {

// Throws ConfigError under `key`, the option that names the file: a wrong name is the user's mistake.
inline std::string read_named_file(const std::string& key, const std::string& path) {
  constexpr int64_t kMostBytes = 1'000'000'000;
  try {
    return file_content(path, kMostBytes);
  } catch (const IoError& error) {
    throw ConfigError({{key, path, cat("cannot be read (", error.what(), ")"), ""}});
  }
}

}  // namespace braid
