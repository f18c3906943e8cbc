#include "braid/mesh/element_blocks.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::mesh {
namespace {

int64_t blocks_in(int64_t elements, int64_t length) { return (elements + length - 1) / length; }

// Returns true if no block lies in two rows.
bool has_blocks_in_rows(const Index& shape, int64_t length) {
  return !shape.empty() && (shape.size() == 1 || shape.back() % length == 0);
}

// Returns true if the local tensor is the global one, with padding behind it if at all.
bool is_global(const Placement& whole) {
  Index shape = whole.local_shape;
  if (!shape.empty()) shape[0] = whole.global_shape[0];
  int64_t held = 0;
  for (const Piece& piece : whole.pieces) {
    if (piece.local_begin != piece.global.begin) return false;
    held += piece.global.num_elements();
  }
  return shape == whole.global_shape && held == num_elements(shape);
}

}  // namespace

bool has_whole_blocks(const Placement& whole, int64_t length) {
  const Index& shape = whole.global_shape;
  if (is_global(whole)) return true;
  if (!has_blocks_in_rows(shape, length)) return false;
  const bool has_whole_rows = shape.size() == 1 || whole.local_shape.back() % length == 0;
  return has_whole_rows && std::ranges::all_of(whole.pieces, [&](const Piece& piece) {
           const int64_t end = piece.global.end.back();
           return piece.global.begin.back() % length == 0 && piece.local_begin.back() % length == 0 &&
                  (end % length == 0 || end == shape.back());
         });
}

Placement placement_of_blocks(const Placement& whole, int64_t length) {
  check(has_whole_blocks(whole, length), "a rank has whole blocks");
  const auto of_blocks = [&](const Index& of_elements) {
    Index shape = of_elements;
    if (has_blocks_in_rows(whole.global_shape, length)) {
      shape.back() = blocks_in(shape.back(), length);
    } else {
      shape = {blocks_in(num_elements(shape), length)};
    }
    return shape;
  };
  Placement blocks{of_blocks(whole.global_shape), of_blocks(whole.local_shape), {}, whole.sharded};
  if (is_global(whole)) {
    blocks.pieces = replicated(blocks.global_shape).pieces;
    return blocks;
  }
  for (const Piece& piece : whole.pieces) {
    blocks.pieces.push_back({{of_blocks(piece.global.begin), of_blocks(piece.global.end)},
                             of_blocks(piece.local_begin),
                             piece.copy,
                             piece.copies});
  }
  return blocks;
}

}  // namespace braid::mesh
