// Why a layout is what it is, in sentences: beside the best of those that differ in one thing, and what it waits for.
#pragma once

#include <string>

#include "braid/search/search.h"

namespace braid {

// "pipe 8 rather than 4, which would need 91.2 GiB on rank 0 of pipe, most of it activations; zero 1 rather than 0,
// which would take 4.0 % longer, most of it data. 12.0 % of the step goes to pipeline." What data ranks there are
// follows from pipe and tensor.
std::string reasons(const SearchRequest& request, const PlannedLayout& layout, Foresight& foresight);

}  // namespace braid
