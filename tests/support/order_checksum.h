// The order of a searched schedule as one number, to compare with orders found elsewhere.
#pragma once

#include <cctype>
#include <cstdint>
#include <string>

#include "braid/schedule/schedule.h"

namespace braid {

// The ranks' programs as "F0 I0 W0|F0 ...", a rank's second stage in small letters.
inline std::string order_text(const Schedule& schedule) {
  std::string all;
  for (const Program& program : schedule.programs) {
    for (const Action& action : program) {
      std::string op = text(action.op);
      if (action.stage >= schedule.num_ranks()) op[0] = static_cast<char>(std::tolower(op[0]));
      all += op + std::to_string(action.micro) + (&action == &program.back() ? '|' : ' ');
    }
  }
  all.pop_back();
  return all;
}

// CRC-32 of zlib.
inline uint32_t crc32(const std::string& bytes) {
  uint32_t sum = 0xffffffff;
  for (const unsigned char byte : bytes) {
    sum ^= byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) ? 0xedb88320u : 0u);
  }
  return ~sum;
}

inline uint32_t order_checksum(const Schedule& schedule) { return crc32(order_text(schedule)); }

}  // namespace braid
