// Cuts a flat range of a tensor into boxes: whole rows in the middle, and at each end a range of a tensor with one dim
// less, which is cut in the same way.
#include "braid/mesh/flat_range.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::mesh {
namespace {

// Collects boxes. cut() adds those of the range [begin, end) in the dims from `dim` on; the earlier dims are fixed at
// `at`.
class Cutter {
 public:
  explicit Cutter(const Index& shape) : shape_(shape) {}

  void cut(size_t dim, Index at, int64_t begin, int64_t end) {
    if (begin == end) return;
    if (dim == shape_.size()) return add(at, dim, 0, 0);
    int64_t row = 1;  // number of elements per index of this dim
    for (size_t d = dim + 1; d < shape_.size(); ++d) row *= shape_[d];
    const int64_t first = begin / row, last = end / row;  // rows of `begin` and `end`
    at.resize(dim);
    if (begin % row != 0 || first == last) {
      const int64_t stop = std::min(end, (first + 1) * row);
      at.push_back(first);
      cut(dim + 1, at, begin - first * row, stop - first * row);
      return cut(dim, at, stop, end);
    }
    add(at, dim, first, last);
    cut(dim, at, last * row, end);
  }

  std::vector<Box> boxes;

 private:
  // Adds the box of indices [first, last) of dim `dim` and all indices of the later dims.
  void add(const Index& at, size_t dim, int64_t first, int64_t last) {
    Box box{Index(shape_.size(), 0), shape_};
    for (size_t d = 0; d < dim; ++d) box.begin[d] = at[d], box.end[d] = at[d] + 1;
    if (dim < shape_.size()) box.begin[dim] = first, box.end[dim] = last;
    boxes.push_back(std::move(box));
  }

  const Index& shape_;
};

int64_t offset(const Index& shape, const Index& at) {
  int64_t offset = 0;
  for (size_t d = 0; d < shape.size(); ++d) offset = offset * shape[d] + at[d];
  return offset;
}

// Returns the part of `piece` inside `box`, both in the local tensor, as a piece of the box.
Piece clipped(const Piece& piece, const Box& box) {
  Box local{piece.local_begin, piece.local_begin};
  for (size_t d = 0; d < box.begin.size(); ++d) local.end[d] += piece.global.end[d] - piece.global.begin[d];
  const Box both = intersection(local, box);
  Piece part = piece;
  part.local_begin = both.begin;
  for (size_t d = 0; d < box.begin.size(); ++d) {
    part.global.begin[d] = piece.global.begin[d] + both.begin[d] - local.begin[d];
    part.global.end[d] = part.global.begin[d] + both.end[d] - both.begin[d];
    part.local_begin[d] = both.begin[d] - box.begin[d];
  }
  return part;
}

// Adds the rows of a piece along its last dim.
void add_rows(const Piece& piece, const Index& shape, std::vector<ElementRun>& runs) {
  const size_t last = shape.size() - 1;
  Index at = piece.local_begin;
  const auto extent = [&](size_t dim) { return piece.global.end[dim] - piece.global.begin[dim]; };
  if (piece.global.empty()) return;
  while (true) {
    const int64_t first = offset(shape, at);
    runs.push_back({first, first + extent(last)});
    size_t dim = last;
    while (dim > 0 && ++at[dim - 1] == piece.local_begin[dim - 1] + extent(dim - 1)) {
      at[dim - 1] = piece.local_begin[dim - 1];
      --dim;
    }
    if (dim == 0) return;
  }
}

}  // namespace

std::vector<ElementRun> runs_of(std::span<const Piece> pieces, const Index& local_shape) {
  int64_t covered = 0;
  for (const Piece& piece : pieces) covered += piece.global.num_elements();
  const int64_t all = num_elements(local_shape);
  if (covered == all) return {{0, all}};
  std::vector<ElementRun> rows, merged;
  for (const Piece& piece : pieces) add_rows(piece, local_shape, rows);
  std::ranges::sort(rows, {}, &ElementRun::begin);
  for (const ElementRun& row : rows) {
    if (!merged.empty() && merged.back().end == row.begin) {
      merged.back().end = row.end;
    } else {
      merged.push_back(row);
    }
  }
  return merged;
}

std::vector<Fragment> fragments(const Placement& whole, int64_t begin, int64_t end) {
  check(0 <= begin && begin <= end && end <= num_elements(whole.local_shape), "a range of the local tensor");
  Cutter cutter(whole.local_shape);
  cutter.cut(0, {}, begin, end);
  std::vector<Fragment> all;
  for (const Box& box : cutter.boxes) {
    Fragment fragment{offset(whole.local_shape, box.begin), {whole.global_shape, {}, {}, whole.sharded}};
    for (size_t d = 0; d < box.begin.size(); ++d) {
      fragment.placement.local_shape.push_back(box.end[d] - box.begin[d]);
    }
    for (const Piece& piece : whole.pieces) {
      Piece part = clipped(piece, box);
      if (!part.global.empty()) fragment.placement.pieces.push_back(std::move(part));
    }
    all.push_back(std::move(fragment));
  }
  return all;
}

}  // namespace braid::mesh
