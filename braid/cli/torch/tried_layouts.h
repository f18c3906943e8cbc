// Layouts of a plan, run on this host beside what was predicted of them.
#pragma once

#include <vector>

#include "braid/plan/search.h"

namespace braid::cli {

// The first `count` of them, for some steps each, of which nothing is kept. Throws ConfigError with everything that
// keeps this host from running one.
void try_layouts(std::vector<plan::PlannedLayout>& layouts, int count);

}  // namespace braid::cli
