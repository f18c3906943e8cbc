// 256 bits that nobody else may know. It does not know what they open.
#pragma once

#include <array>

namespace braid {

// Overwritten in memory when it goes.
struct Secret {
  std::array<unsigned char, 32> bytes{};

  Secret() = default;
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();
};

}  // namespace braid
