// Reads whole what a user has named: a file, or a pipe that is read once.
#pragma once

#include <cstdint>
#include <string>

namespace braid {

// A file with the option or key that named it.
struct NamedFile {
  std::string key, value;
  std::string path;  // in the value
};

constexpr int64_t kMostBytesNamed = int64_t{1} << 28;

// All of a file or a pipe, through links: what a user names on the command line and the program reads once. Waits for
// the writers of a pipe. Throws IoError as file_content() does.
std::string named_content(const std::string& path, int64_t limit);

// The same; throws ConfigError about the key instead, since a wrong name is the user's mistake.
std::string named_file_content(const NamedFile& file, int64_t limit = kMostBytesNamed);

}  // namespace braid
