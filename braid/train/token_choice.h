// Choosing a token by its probability.
#pragma once

#include <cstddef>
#include <span>

namespace braid {

// The place of the token that `draw`, uniform in [0, 1), chooses among those that a model finds most likely: the fewest
// that have the probability `top_p` together, all for 1. `probabilities` descend and sum to 1; there is at least one.
// Source: Holtzman et al., "The Curious Case of Neural Text Degeneration", section 3.1.
size_t chosen_place(std::span<const double> probabilities, double top_p, double draw);

}  // namespace braid
