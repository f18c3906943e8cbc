// Reading a file that a user has named, whole.
// It knows no format.
#pragma once

#include <string>

namespace braid {

// What was written to name a file: an option or a key, and its value.
struct NamedFile {
  std::string key, value;
  std::string path;  // in the value
};

// All of it, through links. Throws ConfigError about the key where the file cannot be read, since a wrong name is the
// user's mistake; so is one of what has no end, or of more bytes than tables and lists of times have.
std::string named_file_content(const NamedFile& file);

}  // namespace braid
