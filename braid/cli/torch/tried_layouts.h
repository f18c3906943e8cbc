// Runs layouts of a plan on this host, for comparison with their predictions.
#pragma once

#include <vector>

#include "braid/plan/search.h"

namespace braid::cli {

// Runs the first `count` layouts for some steps each, without keeping anything of these runs. Throws ConfigError with
// everything that prevents this host from running one.
void try_layouts(std::vector<plan::PlannedLayout>& layouts, int count);

}  // namespace braid::cli
