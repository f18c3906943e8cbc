// The safetensors format: header length (u64, little-endian), header (JSON), the tensors' bytes one after another.
// Own reader and writer of https://github.com/huggingface/safetensors (format section of its README). The writer's
// output equals the reference's byte for byte.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/checked_file.h"

namespace braid::ckpt {

// All types of the format (safetensors 0.6). The reference lays tensors out in this order, last first (wide types
// first, so that all stay aligned).
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
std::string text(ElementType type);  // as in the header: "BF16"
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
  std::vector<TensorEntry> tensors;  // in the order of their bytes
  int64_t data_begin = 0;            // bytes before the first tensor's
};

inline constexpr int64_t kMaxHeaderBytes = 100'000'000;

// Writing: tensors in their order in the file, with their places; then the bytes that come before theirs.
std::vector<TensorEntry> laid_out(std::vector<TensorInfo> tensors);
std::string header_bytes(const std::vector<TensorEntry>& tensors, const SafetensorsMetadata& metadata);

// Reads and checks the header against every rule of the format; throws IoError naming the rule and the byte offset:
// the length fits the file and the limit; one JSON object in UTF-8, of the documented nesting, without duplicate or
// unknown keys; known types; no overflow; whole bytes; each tensor begins where the one before it ends and is as long
// as its shape says; the last ends where the file ends. Allocates no more than a small multiple of the header.
SafetensorsHeader read_header(const CheckedFile& file);
// The same, given the bytes after the length.
SafetensorsHeader parse_header(const std::string& path, std::string_view json, int64_t file_bytes);

// As others name them too: "model-00001-of-00002.safetensors", "model.safetensors" of one alone. Numbers are from one.
std::string safetensors_name(const std::string& kind, size_t number, size_t count);

}  // namespace braid::ckpt
