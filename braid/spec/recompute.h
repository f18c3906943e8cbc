// Parses memory.recompute: the activations of a forward pass that each pipeline stage keeps for its backward. This file
// only parses. nn determines what a layer can recompute, and memory recomputes blocks.
//
//   "none"       keeps everything that backward reads
//   "selective"  keeps all but the attention core and the outputs of norms and activations
//   "every:K"    keeps only the inputs of segments of K transformer blocks
//   "full"       is the same as every:1
//
// The value is one policy for all stages, or one for each, separated by commas: "full,none".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::spec {

struct Recompute {
  enum class Keeps { Everything, Selected, SegmentInputs };
  Keeps keeps = Keeps::Everything;
  int blocks = 0;  // transformer blocks per segment

  bool operator==(const Recompute&) const = default;
};

// Returns the entries of memory.recompute without surrounding blanks: at least one entry, which may be empty.
std::vector<std::string> recompute_entries(const MemorySpec& spec);
// Parses an entry; returns nothing for an unknown word.
std::optional<Recompute> recompute_policy(std::string_view entry);
// Returns the entries with each unknown one replaced by the nearest policy. If there are several, the list is cut to
// `num_stages` entries, or its last is repeated. If `num_stages` is below 1 (unknown), only the first remains.
std::string nearest_recompute(const MemorySpec& spec, int num_stages);

// Returns the policy of one stage. REQUIRES: `spec` has no problems.
Recompute stage_recompute(const MemorySpec& spec, int stage);

}  // namespace braid::spec
