// Cuts behind every K-th of the blocks in the middle.
#include "braid/nn/segment_plan.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::nn {

std::vector<Segment> plan_segments(const spec::Recompute& policy, const StageBlocks& blocks) {
  const int before_head = blocks.embedding + blocks.middle, all = before_head + blocks.head;
  check(all > 0, "a stage has a block");
  if (policy.keeps != spec::Recompute::Keeps::SegmentInputs) return {{0, all, Segment::Kept::Graph}};
  check(policy.blocks >= 1, "a segment has a block");
  std::vector<Segment> segments;
  for (int begin = 0; begin < before_head;) {
    const int end = std::min(std::max(begin, blocks.embedding) + policy.blocks, before_head);
    segments.push_back({begin, end, Segment::Kept::Input});
    begin = end;
  }
  if (blocks.head > 0) segments.push_back({before_head, all, Segment::Kept::Graph});
  return segments;
}

std::vector<Segment> block_by_block(const std::vector<Segment>& plan) {
  std::vector<Segment> all;
  for (const Segment& segment : plan) {
    if (segment.kept == Segment::Kept::Input) {
      all.push_back(segment);
      continue;
    }
    for (int block = segment.begin; block < segment.end; ++block) all.push_back({block, block + 1, segment.kept});
  }
  return all;
}

Keep kept_by_layers(const spec::Recompute& policy) {
  return policy.keeps == spec::Recompute::Keeps::Selected ? Keep::Selected : Keep::Everything;
}

}  // namespace braid::nn
