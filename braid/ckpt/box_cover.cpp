// A sweep along each dim: where no box reaches across, those before and those behind need not be compared.
#include "braid/ckpt/box_cover.h"

#include <algorithm>
#include <span>

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

// The parts into which planes across dim `d` cut them; sorts them.
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

}  // namespace braid::ckpt
