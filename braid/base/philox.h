// Philox 4x32 with 10 rounds, for host and device. Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3"
// (SC11).
#pragma once

#include <cstdint>

#include "braid/base/host_device.h"

namespace braid {

struct PhiloxWords {
  uint32_t at[4];
};

BRAID_HOST_DEVICE inline PhiloxWords philox_words(PhiloxWords c, uint64_t key) {
  uint32_t low_key = static_cast<uint32_t>(key), high_key = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c.at[0], b = uint64_t{0xCD9E8D57} * c.at[2];
    c = {{static_cast<uint32_t>(b >> 32) ^ c.at[1] ^ low_key, static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ c.at[3] ^ high_key, static_cast<uint32_t>(a)}};
    low_key += 0x9E3779B9;
    high_key += 0xBB67AE85;
  }
  return c;
}

}  // namespace braid
