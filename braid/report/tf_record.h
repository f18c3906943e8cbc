// TFRecord, the framing of TensorBoard's event files: length, check sum, bytes, check sum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace braid::report {

// CRC-32C (Castagnoli), as RFC 3720 section 12.1 defines it.
uint32_t crc32c(std::string_view bytes);

// One record: the length as 8 bytes, its masked check sum, the bytes, their masked check sum; all little-endian. The
// mask is rotate-right by 15 plus 0xa282ead8 (tensorflow/core/lib/hash/crc32c.h).
std::string tf_record(std::string_view bytes);

}  // namespace braid::report
