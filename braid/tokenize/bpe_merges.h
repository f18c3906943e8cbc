// The table of merges of neighbouring tokens, and the merging of one piece of text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid::tokenize {

struct BpeMerge {
  uint32_t left = 0;
  uint32_t right = 0;
  uint32_t result = 0;

  bool operator==(const BpeMerge&) const = default;
};

// Packs two ids into one number. Numbers are ordered by the left id, then by the right id.
inline uint64_t pair_of(uint32_t left, uint32_t right) { return (uint64_t{left} << 32) | right; }

// Scratch memory for merging, reused between pieces to avoid allocation. Callers do not read it.
struct MergeScratch {
  struct Node {
    uint32_t token = 0;
    int32_t before = -1, behind = -1;  // neighbours, -1 at the ends
  };
  struct Candidate {
    uint32_t rank = 0;
    int32_t at = 0;
    // tokens when the candidate was made; if they have changed since, the candidate is void
    uint32_t left = 0, right = 0;
    uint32_t result = 0;
  };
  struct Pair {
    uint32_t rank = 0;
    uint32_t result = 0;
  };
  std::vector<Pair> pairs;
  std::vector<Node> nodes;
  std::vector<Candidate> heap;
};

// A table of merges by pair. Several threads may use it at once.
class MergeTable {
 public:
  // `merges` are in order of rank: the first is merged first. If a pair appears twice, the later one counts. REQUIRES:
  // ids are below 2^31.
  explicit MergeTable(const std::vector<BpeMerge>& merges);

  // Merges in place: the pair of lowest rank first, and the leftmost of equal pairs. Short pieces are searched for the
  // lowest rank again after every merge. Long pieces use a heap: n log n for a piece of n bytes.
  void merge(std::vector<uint32_t>& tokens, MergeScratch& scratch) const;

 private:
  static constexpr uint32_t kNoRank = 0xFFFFFFFF;
  struct Slot {
    uint64_t pair = ~uint64_t{0};
    uint32_t rank = kNoRank;
    uint32_t result = 0;
  };

  const Slot& find(uint32_t left, uint32_t right) const;
  size_t place_of(uint64_t pair) const { return (pair * 0x9E3779B97F4A7C15ULL) >> shift_; }
  void merge_short(std::vector<uint32_t>& tokens, MergeScratch& scratch) const;
  void merge_long(std::vector<uint32_t>& tokens, MergeScratch& scratch) const;
  void push(MergeScratch& scratch, int32_t at) const;

  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
  int shift_ = 0;
};

}  // namespace braid::tokenize
