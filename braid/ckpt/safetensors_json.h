// Parses the JSON of a safetensors header. Checks its grammar, not the tensors' places. It deliberately builds no tree,
// so the error for a violation has the byte at which it stands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/ckpt/safetensors.h"

namespace braid::ckpt {

struct ParsedTensor {
  TensorEntry entry;
  int64_t header_offset = 0;  // offset in the file at which its description ends
};

struct HeaderText {
  const std::string& path;
  std::string_view json;
  int64_t offset;  // offset of `json` in the file
};

// Returns the tensors in the order of the header, and fills `metadata`. Throws IoError naming the rule and the byte.
std::vector<ParsedTensor> parse_header_json(const HeaderText& text, SafetensorsMetadata& metadata);

}  // namespace braid::ckpt
