// Whether boxes are a tensor: each inside it, no two with a common element, together all of it.
// It knows no names, ranks or files.
#pragma once

#include <cstdint>
#include <vector>

#include "braid/mesh/placement.h"

namespace braid {

// Whether no two of `boxes`, which are not empty, have a common element. Boxes that planes divide, as those of every
// layout here, cost n log n; others a comparison of each pair that no plane divides.
bool are_disjoint(std::vector<const Box*> boxes);

// Whether `boxes` lie inside a tensor of this shape and cover each of its elements once.
bool cover_once(const std::vector<const Box*>& boxes, const Index& shape);

}  // namespace braid
