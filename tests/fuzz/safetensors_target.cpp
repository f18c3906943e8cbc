// The header of a safetensors file, and that what is accepted can be read where it says it lies.
#include "braid/base/errors.h"
#include "braid/ckpt/safetensors.h"
#include "tests/fuzz/target.h"

namespace braid::fuzz {

using namespace ckpt;

namespace {

void run_safetensors(const std::string& input) {
  const CheckedFile file(as_file(input));
  const SafetensorsHeader header = read_header(file);
  for (const auto& [info, begin, end] : header.tensors) {
    std::string bytes(static_cast<size_t>(end - begin), '\0');
    file.read(header.data_begin + begin, std::as_writable_bytes(std::span(bytes)));
  }
}

std::string file_of(std::vector<TensorInfo> tensors, const SafetensorsMetadata& metadata) {
  const auto entries = laid_out(std::move(tensors));
  return header_bytes(entries, metadata) + std::string(entries.empty() ? 0 : entries.back().end, 'x');
}

std::vector<std::string> safetensors_seeds() {
  return {file_of({}, {}), file_of({{"a", ElementType::F32, {2, 3}}, {"b", ElementType::BF16, {}}}, {{"format", "pt"}}),
          file_of({{"empty", ElementType::I64, {0, 4}}, {"\xc3\xbc\"\\", ElementType::U8, {5}}}, {})};
}

}  // namespace

Target safetensors_target() {
  return {"safetensors",
          run_safetensors,
          safetensors_seeds,
          {"\"dtype\":", "\"shape\":", "\"data_offsets\":", "\"__metadata__\":{", "\"F64\"", "\"F16\"", "\"U8\"",
           "[0,0]", "[1,2]", "{\"a\":", "},", "\\u0000", "\\ud800", "\"", "[[[["}};
}

}  // namespace braid::fuzz
