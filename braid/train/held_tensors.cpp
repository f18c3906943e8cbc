// Cuts owned ranges of the flat buffers into boxes.
#include "braid/train/held_tensors.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <limits>

#include "braid/mesh/flat_range.h"

namespace braid::train {
namespace {

// Visits the elements of `param` that lie in the range of the flat buffer which begins at `begin` and holds `held`.
void visit_range(const param::Parameter& param, int64_t begin, const at::Tensor& held, const VisitPart& visit) {
  const int64_t first = std::max<int64_t>(begin - param.offset, 0);
  const int64_t end = std::min(begin + held.numel() - param.offset, param.num_elements());
  if (first >= end) return;
  for (const mesh::Fragment& part : mesh::fragments(param.placement, first, end)) {
    const mesh::Index& shape = part.placement.local_shape;
    const at::Tensor local = held.detach().narrow(0, param.offset + part.begin - begin, mesh::num_elements(shape));
    visit(param, local.view(shape), part.placement);
  }
}

void visit_frozen(const param::ParamStore& store, const VisitPart& visit) {
  for (const param::Parameter& param : store.frozen()) {
    for (const param::HeldRange& range : store.frozen_data().held()) visit_range(param, range.begin, range.data, visit);
  }
}

}  // namespace

void visit_held(const param::ParamStore& store, Held what, const VisitPart& visit) {
  if (what == Held::Weights) visit_frozen(store, visit);
  for (const param::Parameter& param : store.params()) {
    if (what == Held::Weights && !store.shards_parameters()) {
      visit(param, param.data.detach(), param.placement);
      continue;
    }
    for (const param::OwnedRange& range : store.owned()) {
      const at::Tensor& held = what == Held::Weights ? range.data : what == Held::Masters ? range.master : range.grad;
      visit_range(param, range.begin, held, visit);
    }
  }
}

at::Tensor box_of(const at::Tensor& part, const mesh::Piece& piece) {
  at::Tensor box = part;
  for (int64_t dim = 0; dim < part.dim(); ++dim) {
    box = box.narrow(dim, piece.local_begin[dim], piece.global.end[dim] - piece.global.begin[dim]);
  }
  return box;
}

void visit_boxes(const at::Tensor& part, const mesh::Placement& placement, const at::Tensor& whole,
                 const std::function<void(const at::Tensor& of_part, const at::Tensor& of_whole)>& visit) {
  for (const mesh::Piece& piece : placement.pieces) {
    at::Tensor of_whole = whole;
    for (int64_t dim = 0; dim < whole.dim(); ++dim) {
      of_whole = of_whole.narrow(dim, piece.global.begin[dim], piece.global.end[dim] - piece.global.begin[dim]);
    }
    visit(box_of(part, piece), of_whole);
  }
}

void copy_part(const at::Tensor& part, const mesh::Placement& placement, at::Tensor& whole) {
  if (!whole.defined()) {
    whole = at::full(placement.global_shape, std::numeric_limits<double>::quiet_NaN(), part.options());
  }
  visit_boxes(part, placement, whole, [](const at::Tensor& from, const at::Tensor& to) { to.copy_(from); });
}

}  // namespace braid::train
