// Views of tensors as bytes and pieces, and the element types of tensors in files.
#include "braid/ckpt/tensor_bytes.h"

#include <algorithm>
#include <iterator>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::ckpt {
namespace {

struct StoredType {
  at::ScalarType torch;
  ElementType file;
};
constexpr StoredType kStoredTypes[] = {{at::kByte, ElementType::U8},       {at::kHalf, ElementType::F16},
                                       {at::kBFloat16, ElementType::BF16}, {at::kFloat, ElementType::F32},
                                       {at::kDouble, ElementType::F64},    {at::kLong, ElementType::I64}};

}  // namespace

ElementType element_type(at::ScalarType type) {
  const auto found = std::ranges::find(kStoredTypes, type, &StoredType::torch);
  check(found != std::end(kStoredTypes), cat("a checkpoint holds no tensors of type ", c10::toString(type)));
  return found->file;
}

at::ScalarType scalar_type(ElementType type) {
  const auto found = std::ranges::find(kStoredTypes, type, &StoredType::file);
  check(found != std::end(kStoredTypes), cat("a checkpoint holds no tensors of type ", text(type)));
  return found->torch;
}

bool is_stored(at::ScalarType type) {
  return std::ranges::find(kStoredTypes, type, &StoredType::torch) != std::end(kStoredTypes);
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  check(tensor.is_contiguous() && tensor.device().is_cpu(), "bytes are read from contiguous tensors on the host");
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

at::Tensor part_of(const at::Tensor& local, const mesh::Piece& piece) {
  at::Tensor part = local;
  for (size_t d = 0; d < piece.local_begin.size(); ++d) {
    part = part.narrow(static_cast<int64_t>(d), piece.local_begin[d], piece.global.end[d] - piece.global.begin[d]);
  }
  return part;
}

}  // namespace braid::ckpt
