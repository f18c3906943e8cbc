// 256 bits that nobody else may know. It does not know what they open.
#pragma once

#include <array>
#include <span>

namespace braid {

// Overwritten in memory when it goes.
struct Secret {
  std::array<unsigned char, 32> bytes{};

  Secret() = default;
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() {
    volatile unsigned char* at = bytes.data();  // volatile: the writes are not left out
    for (size_t i = 0; i < bytes.size(); ++i) at[i] = 0;
  }
};

}  // namespace braid
