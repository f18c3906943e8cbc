// Checks that boxes make up a tensor: each lies inside it, no two overlap, and together they cover it.
#pragma once

#include <cstdint>
#include <vector>

#include "braid/mesh/placement.h"

namespace braid::ckpt {

// Returns true if no two of `boxes`, none of them empty, overlap. Costs n log n for boxes that planes separate, as in
// every layout here; pairs that no plane separates are compared one by one.
bool are_disjoint(std::vector<const mesh::Box*> boxes);

// Returns true if `boxes` lie inside a tensor of this shape and cover each of its elements once.
bool cover_once(const std::vector<const mesh::Box*>& boxes, const mesh::Index& shape);

}  // namespace braid::ckpt
