// Intersections of what is wanted with what is there.
#include "braid/ckpt/reshard.h"

namespace braid::ckpt {

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

}  // namespace braid::ckpt
