// The trie as a hash table of edges. Entries are sorted to count the edges before any is stored.
#include "braid/tokenize/token_trie.h"

#include <algorithm>
#include <bit>

namespace braid::tokenize {

TokenTrie::TokenTrie(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
  size_t num_edges = 0;
  std::string_view before;
  for (const Entry& entry : entries) {
    const auto [end, unused] = std::mismatch(entry.text.begin(), entry.text.end(), before.begin(), before.end());
    num_edges += static_cast<size_t>(entry.text.end() - end);
    before = entry.text;
  }
  edges_.resize(std::bit_ceil(std::max<size_t>(num_edges * 2, 2)));
  shift_ = 64 - std::countr_zero(edges_.size());
  uint32_t num_nodes = 1;
  for (const Entry& entry : entries) {
    uint64_t node = 0;
    Edge* edge = nullptr;
    for (const char c : entry.text) {
      const uint64_t key = node << 8 | static_cast<unsigned char>(c);
      edge = &place_for(key);
      if (edge->child == 0) *edge = {key, num_nodes++, kNone};
      node = edge->child;
    }
    if (edge != nullptr) edge->token = entry.token;
  }
}

TokenTrie::Edge& TokenTrie::place_for(uint64_t key) {
  size_t at = place_of(key);
  while (edges_[at].child != 0 && edges_[at].key != key) at = (at + 1) & (edges_.size() - 1);
  return edges_[at];
}

TokenTrie::Match TokenTrie::longest(std::string_view text) const {
  Match match;
  uint64_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const uint64_t key = node << 8 | static_cast<unsigned char>(text[i]);
    size_t at = place_of(key);
    while (edges_[at].child != 0 && edges_[at].key != key) at = (at + 1) & (edges_.size() - 1);
    const Edge& edge = edges_[at];
    if (edge.child == 0) break;
    if (edge.token != kNone) match = {i + 1, edge.token};
    node = edge.child;
  }
  return match;
}

}  // namespace braid::tokenize
