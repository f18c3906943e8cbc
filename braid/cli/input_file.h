// Reading a small file whole.
#pragma once

#include <string>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {

// Throws ConfigError under `key`, the option that names the file: a wrong name is the user's mistake. So is what has no
// end, or more than a small file's bytes.
inline std::string read_named_file(const std::string& key, const std::string& path) {
  constexpr int64_t kMostBytes = int64_t{1} << 28;
  try {
    return file_content(path, kMostBytes);
  } catch (const IoError& error) {
    throw ConfigError({{key, path, cat("cannot be read (", error.what(), ")"), ""}});
  }
}

}  // namespace braid
