// The hash table of merges, and two algorithms that merge with the same result: one for short pieces, one for long
// ones.
#include "braid/tokenize/bpe_merges.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "braid/base/errors.h"

namespace braid::tokenize {
namespace {

constexpr size_t kShort = 48;  // longer pieces are merged with the heap; measured: any limit from 32 to 96 is as fast

// The order for std::push_heap, which keeps the greatest on top: the lowest rank, then the leftmost pair.
bool comes_later(const MergeScratch::Candidate& a, const MergeScratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
}

}  // namespace

MergeTable::MergeTable(const std::vector<BpeMerge>& merges) {
  const size_t size = std::bit_ceil(std::max<size_t>(merges.size() * 2, 2));
  slots_.resize(size);
  shift_ = 64 - std::countr_zero(size);
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const uint64_t pair = pair_of(merges[rank].left, merges[rank].right);
    size_t at = place_of(pair);
    while (slots_[at].rank != kNoRank && slots_[at].pair != pair) at = (at + 1) & (size - 1);
    slots_[at] = {pair, static_cast<uint32_t>(rank), merges[rank].result};
  }
}

const MergeTable::Slot& MergeTable::find(uint32_t left, uint32_t right) const {
  const uint64_t pair = pair_of(left, right);
  size_t at = place_of(pair);
  while (slots_[at].rank != kNoRank && slots_[at].pair != pair) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

void MergeTable::merge(std::vector<uint32_t>& tokens, MergeScratch& scratch) const {
  if (tokens.size() < 2) return;
  check(tokens.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()), "a piece of less than 2 GiB");
  if (tokens.size() <= kShort) {
    merge_short(tokens, scratch);
  } else {
    merge_long(tokens, scratch);
  }
}

void MergeTable::merge_short(std::vector<uint32_t>& tokens, MergeScratch& scratch) const {
  auto& pairs = scratch.pairs;  // pairs[i] is the merge of tokens i and i + 1
  pairs.clear();
  const auto look = [&](size_t i) {
    const Slot& slot = find(tokens[i], tokens[i + 1]);
    return MergeScratch::Pair{slot.rank, slot.result};
  };
  for (size_t i = 0; i + 1 < tokens.size(); ++i) pairs.push_back(look(i));
  while (!pairs.empty()) {
    size_t best = 0;
    for (size_t i = 1; i < pairs.size(); ++i) best = pairs[i].rank < pairs[best].rank ? i : best;
    if (pairs[best].rank == kNoRank) return;
    tokens[best] = pairs[best].result;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(best));
    if (best < pairs.size()) pairs[best] = look(best);
    if (best > 0) pairs[best - 1] = look(best - 1);
  }
}

// Queues the pair that begins at `at` if a merge exists for it.
void MergeTable::push(MergeScratch& scratch, int32_t at) const {
  if (at < 0) return;
  const auto& node = scratch.nodes[at];
  if (node.behind < 0) return;
  const uint32_t right = scratch.nodes[node.behind].token;
  const Slot& slot = find(node.token, right);
  if (slot.rank == kNoRank) return;
  scratch.heap.push_back({slot.rank, at, node.token, right, slot.result});
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), comes_later);
}

void MergeTable::merge_long(std::vector<uint32_t>& tokens, MergeScratch& scratch) const {
  auto& nodes = scratch.nodes;
  auto& heap = scratch.heap;
  nodes.clear();
  heap.clear();
  const auto size = static_cast<int32_t>(tokens.size());
  for (int32_t i = 0; i < size; ++i) nodes.push_back({tokens[i], i - 1, i + 1 < size ? i + 1 : -1});
  for (int32_t i = 0; i + 1 < size; ++i) push(scratch, i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    const auto top = heap.back();
    heap.pop_back();
    auto& node = nodes[top.at];
    // Skips outdated candidates. A node merged into its left neighbour has the token kNoRank, so its candidates are
    // skipped.
    if (node.token != top.left || node.behind < 0 || nodes[node.behind].token != top.right) continue;
    auto& taken = nodes[node.behind];
    node.token = top.result;
    node.behind = taken.behind;
    taken.token = kNoRank;
    if (node.behind >= 0) nodes[node.behind].before = top.at;
    push(scratch, top.at);
    push(scratch, node.before);
  }
  tokens.clear();
  for (int32_t i = 0; i >= 0; i = nodes[i].behind) tokens.push_back(nodes[i].token);
}

}  // namespace braid::tokenize
