// The blocks between the queries of some tokens and the keys of others, against each pair of tokens.
#include "braid/nn/attention_blocks.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/support/dice.h"

namespace braid::nn::attention_blocks_test {
namespace {

using Pair = std::pair<int64_t, int64_t>;  // query, key

// Returns the pairs of a sequence's tokens in the blocks, and fails if one is there twice or a query sees no key.
std::set<Pair> pairs_in(const std::vector<AttentionBlock>& blocks, int64_t sequence) {
  std::set<Pair> pairs;
  for (const AttentionBlock& block : blocks) {
    if (sequence < block.sequence || sequence >= block.sequence + block.num_sequences) continue;
    EXPECT_TRUE(!block.causal || block.num_queries == block.num_keys);
    const auto mask = mask_of(block, at::kFloat);
    for (int64_t i = 0; i < block.num_queries; ++i) {
      int seen = 0;
      for (int64_t j = 0; j < block.num_keys; ++j) {
        if (block.causal && j > i) continue;
        if (mask && (*mask)[i][j].item<float>() != 0) continue;
        EXPECT_TRUE(pairs.emplace(block.query + i, block.key + j).second) << "a pair is in two blocks";
        ++seen;
      }
      EXPECT_GT(seen, 0) << "query " << block.query + i << " of a block sees none of its keys";
    }
  }
  return pairs;
}

std::set<Pair> pairs_seen(const TokenRange& queries, const TokenRange& keys, const SeenTokens& seen, int64_t sequence) {
  std::set<Pair> pairs;
  const auto document = [&](int64_t token) {
    return seen.documents_bt.defined() ? seen.documents_bt[sequence][token].item<int64_t>() : 0;
  };
  for (int64_t q = queries.begin; q < queries.end; ++q) {
    for (int64_t k = keys.begin; k < keys.end; ++k) {
      const bool in_order = seen.sees == model::Sees::All || k <= q;
      const bool in_window = seen.window == 0 || k > q - seen.window;
      if (in_order && in_window && document(q) == document(k)) pairs.emplace(q, k);
    }
  }
  return pairs;
}

at::Tensor drawn_documents(Dice& dice, int64_t b, int64_t t) {
  at::Tensor documents_bt = at::zeros({b, t}, at::kLong);
  for (int64_t sequence = 0; sequence < b; ++sequence) {
    int64_t document = 0;
    for (int64_t token = 0; token < t; ++token) {
      if (dice.between(0, 5) == 0) ++document;
      documents_bt[sequence][token] = document;
    }
  }
  return documents_bt;
}

TEST(AttentionBlocks, HaveEachPairThatIsSeenOnce) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Dice dice(seed);
    const int64_t halves = 2 * dice.between(1, 3), length = dice.between(1, 7), b = 2;
    SeenTokens seen;
    if (dice.between(0, 2) > 0) seen.documents_bt = drawn_documents(dice, b, halves * length);
    if (dice.between(0, 3) == 0) {
      seen.sees = model::Sees::All;
    } else if (dice.between(0, 1) == 0) {
      seen.window = dice.between(1, 9);
    }
    for (int64_t i = 0; i < halves; ++i) {
      for (int64_t j = 0; j < halves; ++j) {
        const TokenRange queries{i * length, (i + 1) * length}, keys{j * length, (j + 1) * length};
        const auto blocks = blocks_between(queries, keys, b, seen);
        for (int64_t sequence = 0; sequence < b; ++sequence) {
          ASSERT_EQ(pairs_in(blocks, sequence), pairs_seen(queries, keys, seen, sequence))
              << "seed " << seed << ", halves " << i << " and " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace braid::nn::attention_blocks_test
