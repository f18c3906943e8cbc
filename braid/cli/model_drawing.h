// Pictures of a run's model: its ops and the values between them.
#pragma once

#include <string>

#include "braid/layout/listing.h"
#include "braid/spec/run_spec.h"

namespace braid::cli {

// Returns the ops as one rank runs them for a microbatch, with the run's frozen parameters. REQUIRES: the vocabulary is
// known.
layout::Listing listing_of(const RunSpec& run);

// Returns "ln_1.weight (frozen), ln_1.bias".
std::string parameters_text(const layout::ListedOp& op, const std::string& between);

// Returns "[2, 16, 32]".
std::string shape_text(const layout::ListedOp& op);

// Returns the graph in the language of Graphviz.
std::string model_dot(const layout::Listing& listing);

// Returns a self-contained SVG: a column of boxes for the embedding, for a layer, which stands for all, and for the
// head. Arcs are values that are read later than by the next op.
std::string model_svg(const layout::Listing& listing);

}  // namespace braid::cli
