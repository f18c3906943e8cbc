// Element types, layout and writing of safetensors files, and checks of the tensors' places in a file that is read.
// safetensors_json.cpp reads the JSON of the header.
#include "braid/ckpt/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/safetensors_json.h"

namespace braid::ckpt {
namespace {

constexpr int64_t kLengthBytes = 8;

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string list(const std::vector<int64_t>& values) {
  std::vector<std::string> words;
  for (const int64_t value : values) words.push_back(cat(value));
  return cat("[", joined(words, ","), "]");
}

struct NamedType {
  const char* name;
  int64_t bits;
};
// Indexed by ElementType.
constexpr NamedType kTypes[kNumElementTypes] = {
    {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8},
    {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16}, {"BF16", 16}, {"I32", 32},
    {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},    {"I64", 64}, {"U64", 64}};

// Computes the bytes of a tensor, rounded down. Returns false if they or the number of elements do not fit 63 bits.
bool size_in_bytes(const TensorInfo& info, int64_t& bytes) {
  const int64_t bits = bits_per_element(info.type);
  bytes = std::max<int64_t>(1, bits / 8);
  for (const int64_t extent : info.shape) {
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) return false;
  }
  if (bits < 8) bytes = bytes / 8 * bits + bytes % 8 * bits / 8;  // `bytes` counted elements until here
  return true;
}

// Returns true if a tensor's size is a whole number of bytes. The size fits 63 bits.
bool has_whole_bytes(const TensorInfo& info) {
  int64_t bits = bits_per_element(info.type) % 8;
  for (const int64_t extent : info.shape) bits = bits * (extent % 8) % 8;
  return bits == 0;
}

// Checks one tensor's place. `previous_end` is the end of the tensor before it.
void check_place(const std::string& path, const ParsedTensor& parsed, int64_t previous_end, int64_t data_begin) {
  const auto& [info, begin, end] = parsed.entry;
  if (end < begin) {
    throw IoError(path, parsed.header_offset,
                  cat("tensor ", info.name, " ends at ", end, ", before its begin ", begin));
  }
  if (begin != previous_end) {
    throw IoError(path, data_begin + std::min(begin, previous_end),
                  cat(begin > previous_end ? "hole before" : "overlap with", " tensor ", info.name,
                      ", which begins at ", begin, " while the tensor before it ends at ", previous_end));
  }
  int64_t bytes = 0;
  if (!size_in_bytes(info, bytes)) {
    throw IoError(path, parsed.header_offset, cat("the size of tensor ", info.name, " overflows 63 bits"));
  }
  if (!has_whole_bytes(info)) {
    throw IoError(
        path, parsed.header_offset,
        cat("tensor ", info.name, " of type ", text(info.type), " and its shape is no whole number of bytes"));
  }
  if (bytes != end - begin) {
    throw IoError(path, parsed.header_offset,
                  cat("tensor ", info.name, " has ", end - begin, " bytes; its shape and type need ", bytes));
  }
}

}  // namespace

std::string text(ElementType type) { return kTypes[static_cast<int>(type)].name; }

int64_t bits_per_element(ElementType type) { return kTypes[static_cast<int>(type)].bits; }

int64_t bytes_per_element(ElementType type) {
  const int64_t bits = bits_per_element(type);
  check(bits % 8 == 0, "elements of this type are whole bytes");
  return bits / 8;
}

std::vector<TensorEntry> laid_out(std::vector<TensorInfo> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(b.type, a.name) < std::tie(a.type, b.name);
  });
  std::vector<TensorEntry> entries;
  int64_t end = 0;
  for (auto& info : tensors) {
    int64_t bytes = 0;
    check(size_in_bytes(info, bytes), "a tensor's size in bytes fits in 63 bits");
    entries.push_back({std::move(info), end, end + bytes});
    end += bytes;
  }
  return entries;
}

std::string header_bytes(const std::vector<TensorEntry>& tensors, const SafetensorsMetadata& metadata) {
  std::vector<std::string> members;
  if (!metadata.empty()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : metadata) pairs.push_back(cat(quoted(key), ":", quoted(value)));
    members.push_back(cat("\"__metadata__\":{", joined(pairs, ","), "}"));
  }
  for (const auto& [info, begin, end] : tensors) {
    members.push_back(cat(quoted(info.name), ":{\"dtype\":\"", text(info.type), "\",\"shape\":", list(info.shape),
                          ",\"data_offsets\":", list({begin, end}), "}"));
  }
  std::string json = cat("{", joined(members, ","), "}");
  json.resize((json.size() + 7) / 8 * 8, ' ');  // the data begins at a multiple of eight bytes
  check(static_cast<int64_t>(json.size()) <= kMaxHeaderBytes, "a safetensors header has at most 100,000,000 bytes");
  const uint64_t length = json.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + json;
}

SafetensorsHeader read_header(const CheckedFile& file) {
  if (file.bytes() < kLengthBytes) {
    throw IoError(file.path(), 0, cat("has ", file.bytes(), " bytes; a safetensors file has at least ", kLengthBytes));
  }
  uint64_t length = 0;
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > uint64_t{kMaxHeaderBytes}) {
    throw IoError(file.path(), 0, cat("header length ", length, " is above the limit of ", kMaxHeaderBytes));
  }
  if (static_cast<int64_t>(length) > file.bytes() - kLengthBytes) {
    throw IoError(file.path(), 0, cat("header length ", length, " does not fit the file of ", file.bytes(), " bytes"));
  }
  std::string json(length, '\0');
  file.read(kLengthBytes, std::as_writable_bytes(std::span(json)));
  return parse_header(file.path(), json, file.bytes());
}

SafetensorsHeader parse_header(const std::string& path, std::string_view json, int64_t file_bytes) {
  SafetensorsHeader header;
  header.data_begin = kLengthBytes + static_cast<int64_t>(json.size());
  auto parsed = parse_header_json({path, json, kLengthBytes}, header.metadata);
  std::sort(parsed.begin(), parsed.end(), [](const ParsedTensor& a, const ParsedTensor& b) {
    return std::tie(a.entry.begin, a.entry.end) < std::tie(b.entry.begin, b.entry.end);
  });
  int64_t end = 0;
  for (auto& tensor : parsed) {
    check_place(path, tensor, end, header.data_begin);
    end = tensor.entry.end;
    header.tensors.push_back(std::move(tensor.entry));
  }
  if (end != file_bytes - header.data_begin) {
    throw IoError(
        path, std::min(header.data_begin + end, file_bytes),
        cat("the tensors need ", end, " bytes after the header; the file has ", file_bytes - header.data_begin));
  }
  return header;
}

std::string safetensors_name(const std::string& kind, size_t number, size_t count) {
  const auto digits = [](size_t value) {
    const std::string text = cat(value);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  return cat(kind, count > 1 ? cat("-", digits(number), "-of-", digits(count)) : "", ".safetensors");
}

}  // namespace braid::ckpt
