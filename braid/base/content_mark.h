// What was read under some name, told by its content: equal marks are equal bytes, wherever they lie.
// It reads nothing.
#pragma once

#include <cstdint>
#include <string>

namespace braid {

struct ContentMark {
  std::string name;  // without a folder, "source0-train-00000.tokens"
  int64_t documents = 0, bytes = 0;
  uint64_t digest = 0;  // XXH64

  bool operator==(const ContentMark&) const = default;
};

}  // namespace braid
