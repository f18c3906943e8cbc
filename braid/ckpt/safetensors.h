// Reader and writer of the safetensors format (https://github.com/huggingface/safetensors, format section of its
// README). A file consists of the header's length (u64, little-endian), the header (JSON), and the tensors' bytes one
// after another. The writer's output equals the reference implementation's byte for byte.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/checked_file.h"

namespace braid::ckpt {

// All types of the format (safetensors 0.6). The reference implementation lays tensors out in the reverse of this
// order: wide types first, so that all stay aligned.
enum class ElementType {
  Bool,
  F4,
  F6_E2M3,
  F6_E3M2,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64
};
inline constexpr int kNumElementTypes = 20;
std::string text(ElementType type);  // its name in the header: "BF16"
int64_t bits_per_element(ElementType type);
// check() fails for a type whose elements are not whole bytes.
int64_t bytes_per_element(ElementType type);

struct TensorInfo {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  bool operator==(const TensorInfo&) const = default;
};

struct TensorEntry {
  TensorInfo info;
  int64_t begin = 0, end = 0;  // bytes, counted from the end of the header
  bool operator==(const TensorEntry&) const = default;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  SafetensorsMetadata metadata;
  std::vector<TensorEntry> tensors;  // in the order of their bytes in the file
  int64_t data_begin = 0;            // offset in the file at which the tensors' bytes begin
};

inline constexpr int64_t kMaxHeaderBytes = 100'000'000;

// Returns the tensors in the order of the file, with their places.
std::vector<TensorEntry> laid_out(std::vector<TensorInfo> tensors);
// Returns the bytes of the file before the tensors' bytes.
std::string header_bytes(const std::vector<TensorEntry>& tensors, const SafetensorsMetadata& metadata);

// Reads the header and checks it against every rule of the format:
// * the length fits the file and kMaxHeaderBytes;
// * the header is one JSON object in UTF-8, nested as documented, without duplicate or unknown keys;
// * types are known, and sizes are whole bytes that do not overflow;
// * each tensor begins where the one before it ends, and is as long as its shape requires;
// * the last tensor ends where the file ends.
// Throws IoError naming the rule and the byte offset. Allocates no more than a small multiple of the header.
SafetensorsHeader read_header(const CheckedFile& file);
// Same as read_header(), given the bytes after the length.
SafetensorsHeader parse_header(const std::string& path, std::string_view json, int64_t file_bytes);

// Returns the customary name: "model-00001-of-00002.safetensors", or "model.safetensors" if `count` is 1. `number`
// counts from 1.
std::string safetensors_name(const std::string& kind, size_t number, size_t count);

}  // namespace braid::ckpt
