// Identifies a file by its content: equal marks mean equal bytes, wherever the files lie.
#pragma once

#include <cstdint>
#include <string>

#include "braid/base/digest.h"

namespace braid {

struct ContentMark {
  std::string name;  // without a folder, "source0-train-00000.tokens"
  int64_t documents = 0, bytes = 0;
  NamedDigest digest;  // of the kind that the file itself has

  bool operator==(const ContentMark&) const = default;
};

}  // namespace braid
