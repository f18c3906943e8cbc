// Views and types.
#include "braid/ckpt/tensor_bytes.h"

#include <algorithm>
#include <iterator>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

constexpr at::ScalarType kStoredTypes[] = {at::kByte, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kLong};

}  // namespace

ElementType element_type(at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return ElementType::U8;
    case at::kHalf:
      return ElementType::F16;
    case at::kBFloat16:
      return ElementType::BF16;
    case at::kFloat:
      return ElementType::F32;
    case at::kDouble:
      return ElementType::F64;
    case at::kLong:
      return ElementType::I64;
    default:
      throw InternalError(cat("a checkpoint holds no tensors of type ", c10::toString(type)));
  }
}

at::ScalarType scalar_type(ElementType type) { return kStoredTypes[static_cast<int>(type)]; }

bool is_stored(at::ScalarType type) { return std::ranges::find(kStoredTypes, type) != std::end(kStoredTypes); }

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  check(tensor.is_contiguous() && tensor.device().is_cpu(), "bytes are read from contiguous tensors on the host");
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

at::Tensor part_of(const at::Tensor& local, const Piece& piece) {
  at::Tensor part = local;
  for (size_t d = 0; d < piece.local_begin.size(); ++d) {
    part = part.narrow(static_cast<int64_t>(d), piece.local_begin[d], piece.global.end[d] - piece.global.begin[d]);
  }
  return part;
}

}  // namespace braid
