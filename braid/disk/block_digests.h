// Digests of the blocks of a file, kept in memory, to find bytes that changed on the disk.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "braid/base/digest.h"
#include "braid/disk/disk.h"

namespace braid::disk {

// Offsets and sizes are whole blocks of kBlockBytes, so a read is compared however its bytes were written. A digest is
// the lower 32 bits of XXH3: 0.1 % of what is on the disk.
class BlockDigests {
 public:
  void record(int64_t offset, std::span<const std::byte> bytes) {
    const auto first = static_cast<size_t>(offset / kBlockBytes), count = bytes.size() / kBlockBytes;
    if (values_.size() < first + count) values_.resize(first + count);
    for (size_t i = 0; i < count; ++i) values_[first + i] = digest(bytes, i);
  }

  // Returns the offset of the first block of `bytes` that was recorded with other bytes.
  std::optional<int64_t> first_difference(int64_t offset, std::span<const std::byte> bytes) const {
    const auto first = static_cast<size_t>(offset / kBlockBytes), count = bytes.size() / kBlockBytes;
    for (size_t i = 0; i < count && first + i < values_.size(); ++i) {
      const uint32_t recorded = values_[first + i];
      if (recorded != 0 && recorded != digest(bytes, i)) return offset + static_cast<int64_t>(i) * kBlockBytes;
    }
    return {};
  }

  int64_t end() const { return std::ssize(values_) * kBlockBytes; }  // behind the last block that was recorded

 private:
  static uint32_t digest(std::span<const std::byte> bytes, size_t block) {
    const auto value =
        static_cast<uint32_t>(digest_of(DigestKind::Xxh3, bytes.subspan(block * kBlockBytes, kBlockBytes)));
    return std::max(value, uint32_t{1});
  }

  std::vector<uint32_t> values_;  // by block; 0: it was not recorded
};

}  // namespace braid::disk
