// Parses memory.recompute: the activations of a forward pass that each pipeline stage keeps for its backward. This file
// only parses. nn determines what a layer can recompute, and memory recomputes blocks.
//
//   "none"          keeps everything that backward reads
//   "selective"     keeps all but the attention core and the outputs of norms and activations
//   "every:K"       keeps only the inputs of segments of K transformer blocks
//   "full"          is the same as every:1
//   "blocks:LIST"   keeps only the inputs of the blocks in LIST, and everything of the other blocks
//
// LIST has ranges of the stage's transformer blocks, which count from 0, in order and separated by "+". "0-3" is four
// blocks, each a segment of its own; "0-3/2" is two segments of two blocks; "7" is one block. A part of a block that a
// cut leaves on a stage counts as a block.
//
// The value is one policy for all stages, or one for each, separated by commas: "full,none". "auto" is not a policy: a
// run with memory.limit_gb replaces it by the fastest policies that fit (plan/fastest_recompute.h). Until then it
// stands for "none".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::spec {

inline constexpr const char* kAutoRecompute = "auto";

// The blocks [begin, end) of a stage, recomputed in segments of `segment` blocks.
struct RecomputedBlocks {
  int begin = 0, end = 0, segment = 1;

  bool operator==(const RecomputedBlocks&) const = default;
};

struct Recompute {
  enum class Keeps { Everything, Selected, SegmentInputs, Listed };
  Keeps keeps = Keeps::Everything;
  int blocks = 0;                             // SegmentInputs: transformer blocks per segment
  std::vector<RecomputedBlocks> listed = {};  // Listed: in order, without overlaps

  bool is_by_segments() const { return keeps == Keeps::SegmentInputs || keeps == Keeps::Listed; }
  bool operator==(const Recompute&) const = default;
};

// Returns the segments that a stage of `num_blocks` transformer blocks recomputes, in order: `segment` is the size of
// each. Listed blocks that the stage does not have are left out.
std::vector<RecomputedBlocks> recomputed_segments(const Recompute& policy, int num_blocks);
// Returns the shortest entry for a stage of `num_blocks` blocks that recomputes these segments: "none", "full",
// "every:K" or "blocks:LIST".
std::string recompute_text(const std::vector<RecomputedBlocks>& segments, int num_blocks);

// Returns the entries of memory.recompute without surrounding blanks: at least one entry, which may be empty.
std::vector<std::string> recompute_entries(const MemorySpec& spec);
// Parses an entry; returns nothing for an unknown word or a malformed list.
std::optional<Recompute> recompute_policy(std::string_view entry);
// Returns the faults of all entries that are no policies, "" if there are none: unknown words, malformed ranges,
// ranges that are out of order or overlap.
std::string recompute_faults(const MemorySpec& spec);
// Returns the ranges of lists that have blocks which their stage does not have, "" if there are none. `num_blocks` is
// by stage.
std::string missing_blocks(const MemorySpec& spec, const std::vector<int>& num_blocks);
// Returns the entries with each unknown one replaced by the nearest policy. If there are several, the list is cut to
// the number of stages, or its last is repeated. Lists lose the blocks that their stage does not have. `num_blocks` is
// by stage; if it is empty (unknown), only the first entry remains.
std::string nearest_recompute(const MemorySpec& spec, const std::vector<int>& num_blocks);

// Returns the number of transformer blocks of each stage. REQUIRES: as stage_units().
std::vector<int> stage_blocks(const RunSpec& spec, int num_stages);

// Returns the policy of one stage. REQUIRES: `spec` has no problems.
Recompute stage_recompute(const MemorySpec& spec, int stage);

}  // namespace braid::spec
