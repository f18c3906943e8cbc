// Boxes as runs of bytes. Runs are numbered in file order, so the runs in a range of the file are found by bisection.
#include "braid/ckpt/box_runs.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <span>

#include "braid/ckpt/tensor_bytes.h"

namespace braid::ckpt {
namespace {

using Boxes = std::span<const mesh::Box*>;

bool pairs_are_disjoint(Boxes boxes) {
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (!mesh::intersection(*boxes[i], *boxes[j]).empty()) return false;
    }
  }
  return true;
}

// Returns the parts into which planes across dim `d` separate the boxes. Sorts `boxes`.
std::vector<Boxes> cut(Boxes boxes, size_t d) {
  std::sort(boxes.begin(), boxes.end(),
            [d](const mesh::Box* a, const mesh::Box* b) { return a->begin[d] < b->begin[d]; });
  std::vector<Boxes> parts;
  size_t first = 0;
  int64_t end = boxes[0]->end[d];
  for (size_t i = 1; i <= boxes.size(); ++i) {
    if (i < boxes.size() && boxes[i]->begin[d] < end) {
      end = std::max(end, boxes[i]->end[d]);
      continue;
    }
    parts.push_back(boxes.subspan(first, i - first));
    first = i;
    if (i < boxes.size()) end = boxes[i]->end[d];
  }
  return parts;
}

bool disjoint(Boxes boxes) {
  if (boxes.size() < 2) return true;
  for (size_t d = 0; d < boxes[0]->begin.size(); ++d) {
    const auto parts = cut(boxes, d);
    if (parts.size() > 1) return std::all_of(parts.begin(), parts.end(), disjoint);
  }
  return pairs_are_disjoint(boxes);
}

bool is_inside(const mesh::Box& box, const mesh::Index& shape) {
  if (box.begin.size() != shape.size() || box.end.size() != shape.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (box.begin[d] < 0 || box.begin[d] > box.end[d] || box.end[d] > shape[d]) return false;
  }
  return true;
}

}  // namespace

bool are_disjoint(std::vector<const mesh::Box*> boxes) { return disjoint(boxes); }

bool cover_once(const std::vector<const mesh::Box*>& boxes, const mesh::Index& shape) {
  int64_t covered = 0;
  std::vector<const mesh::Box*> filled;
  for (const mesh::Box* box : boxes) {
    if (!is_inside(*box, shape)) return false;
    covered += box->num_elements();
    if (!box->empty()) filled.push_back(box);
  }
  return covered == mesh::num_elements(shape) && are_disjoint(std::move(filled));
}

std::vector<BoxCopy> plan_reshard(const Manifest& manifest, const std::vector<PlacedTensor>& tensors) {
  std::vector<BoxCopy> copies;
  for (size_t target = 0; target < tensors.size(); ++target) {
    const auto& boxes = manifest.tensors.at(tensors[target].name).boxes;
    for (const mesh::Piece& wanted : tensors[target].placement.pieces) {
      for (const ManifestBox& from : boxes) {
        mesh::Piece piece{mesh::intersection(wanted.global, from.box), wanted.local_begin};
        if (piece.global.empty()) continue;
        for (size_t d = 0; d < piece.local_begin.size(); ++d) {
          piece.local_begin[d] += piece.global.begin[d] - wanted.global.begin[d];
        }
        copies.push_back({target, &from, std::move(piece)});
      }
    }
  }
  return copies;
}

StoredRows rows_read(const BoxCopy& copy, ElementType type) {
  const mesh::Box& box = copy.from->box;
  const int64_t bytes = box.num_elements() * bytes_per_element(type);
  if (box.begin.empty()) return {0, 1, bytes};
  const int64_t first = box.begin[0];
  return {copy.piece.global.begin[0] - first, copy.piece.global.end[0] - first, bytes / (box.end[0] - first)};
}

BoxRuns::BoxRuns(const BoxCopy& copy, const Stored& stored, const at::Tensor& local)
    : begin_(stored.begin), run_(stored.element_bytes) {
  const at::Tensor part = part_of(local, copy.piece);
  const mesh::Index extent = extents(copy.from->box), wanted = extents(copy.piece.global);
  memory_ = static_cast<std::byte*>(part.data_ptr());
  int64_t step = run_;  // bytes in the file
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
