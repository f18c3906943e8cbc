// The JSON of a safetensors header: its grammar, nothing about where tensors lie.
// It deliberately builds no tree: what the format does not allow is refused where it stands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/ckpt/safetensors.h"

namespace braid::ckpt {

struct ParsedTensor {
  TensorEntry entry;
  int64_t header_offset = 0;  // byte of the file at which its description ends
};

struct HeaderText {
  const std::string& path;
  std::string_view json;
  int64_t offset;  // of `json` in the file
};

// The tensors in the order of the header. Throws IoError naming the rule and the byte.
std::vector<ParsedTensor> parse_header_json(const HeaderText& text, SafetensorsMetadata& metadata);

}  // namespace braid::ckpt
