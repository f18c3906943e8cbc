// Runs are numbered in the order of the file, so those that a stretch of it meets are found by bisection.
#include "braid/ckpt/box_runs.h"

#include <algorithm>
#include <cstring>
#include <ranges>

#include "braid/ckpt/tensor_bytes.h"

namespace braid::ckpt {

BoxRuns::BoxRuns(const BoxCopy& copy, const Stored& stored, const at::Tensor& local)
    : begin_(stored.begin), run_(stored.element_bytes) {
  const at::Tensor part = part_of(local, copy.piece);
  const mesh::Index extent = extents(copy.from->box), wanted = extents(copy.piece.global);
  memory_ = static_cast<std::byte*>(part.data_ptr());
  int64_t step = run_;  // in the file
  for (size_t d = wanted.size(); d-- > 0; step *= extent[d]) {
    begin_ += (copy.piece.global.begin[d] - copy.from->box.begin[d]) * step;
    const int64_t memory_step = part.stride(static_cast<int64_t>(d)) * stored.element_bytes;
    if (wanted[d] == 1) continue;
    if (dims_.empty() && step == run_ && memory_step == run_) {
      run_ *= wanted[d];
    } else {
      dims_.push_back({wanted[d], step, memory_step});
      num_runs_ *= wanted[d];
    }
  }
}

std::pair<int64_t, std::byte*> BoxRuns::place(int64_t number) const {
  int64_t offset = begin_;
  std::byte* memory = memory_;
  for (const Dim& dim : dims_) {
    offset += number % dim.extent * dim.file_step;
    memory += number % dim.extent * dim.memory_step;
    number /= dim.extent;
  }
  return {offset, memory};
}

void BoxRuns::copy(int64_t offset, std::span<const std::byte> bytes) const {
  const int64_t stop = offset + std::ssize(bytes);
  const auto numbers = std::views::iota(int64_t{0}, num_runs_);
  const auto first =
      std::ranges::partition_point(numbers, [&](int64_t number) { return place(number).first + run_ <= offset; });
  for (int64_t number = first - numbers.begin(); number < num_runs_; ++number) {
    const auto [begin, memory] = place(number);
    if (begin >= stop) return;
    const int64_t from = std::max(begin, offset), to = std::min(begin + run_, stop);
    std::memcpy(memory + (from - begin), bytes.data() + (from - offset), static_cast<size_t>(to - from));
  }
}

}  // namespace braid::ckpt
