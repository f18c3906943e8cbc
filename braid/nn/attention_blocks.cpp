// Blocks of documents, and in these of runs of a window.
#include "braid/nn/attention_blocks.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

namespace braid::nn {
namespace {

// Returns the ranges of tokens of one document in `tokens`.
std::vector<TokenRange> documents_in(const TokenRange& tokens, const int64_t* documents) {
  std::vector<TokenRange> ranges;
  for (int64_t token = tokens.begin; token < tokens.end; ++token) {
    if (ranges.empty() || documents[token] != documents[token - 1]) ranges.push_back({token, token});
    ranges.back().end = token + 1;
  }
  return ranges;
}

// Appends the blocks of queries and keys of one document. Under a window, runs of `window` queries meet the keys that
// they see.
void append_blocks(const TokenRange& queries, const TokenRange& keys, const TokenRange& sequences,
                   const SeenTokens& seen, std::vector<AttentionBlock>& blocks) {
  const bool earlier = seen.sees == model::Sees::Earlier, same = queries.begin == keys.begin;
  if (earlier && keys.begin > queries.begin) return;
  const auto append = [&](const TokenRange& q, const TokenRange& k, bool causal, int64_t window) {
    blocks.push_back({sequences.begin, sequences.end - sequences.begin, q.begin, q.end - q.begin, k.begin,
                      k.end - k.begin, causal, window});
  };
  if (seen.window == 0 || queries.end - keys.begin <= seen.window) return append(queries, keys, earlier && same, 0);
  for (int64_t begin = queries.begin; begin < queries.end; begin += seen.window) {
    const TokenRange run_keys{std::max(keys.begin, begin - seen.window + 1), std::min(keys.end, begin + seen.window)};
    const TokenRange run{begin, std::min({queries.end, begin + seen.window, run_keys.end + seen.window - 1})};
    if (run_keys.begin < run_keys.end && run.begin < run.end) append(run, run_keys, false, seen.window);
  }
}

}  // namespace

std::vector<AttentionBlock> blocks_between(const TokenRange& queries, const TokenRange& keys, int64_t b,
                                           const SeenTokens& seen) {
  std::vector<AttentionBlock> blocks;
  if (!seen.documents_bt.defined()) {
    append_blocks(queries, keys, {0, b}, seen, blocks);
    return blocks;
  }
  const at::Tensor documents_bt = seen.documents_bt.contiguous();
  for (int64_t sequence = 0; sequence < b; ++sequence) {
    const auto* const documents = documents_bt.const_data_ptr<int64_t>() + sequence * documents_bt.size(1);
    for (const TokenRange& q : documents_in(queries, documents)) {
      for (const TokenRange& k : documents_in(keys, documents)) {
        if (documents[q.begin] == documents[k.begin]) append_blocks(q, k, {sequence, sequence + 1}, seen, blocks);
      }
    }
  }
  return blocks;
}

std::optional<at::Tensor> mask_of(const AttentionBlock& block, const at::TensorOptions& like) {
  if (block.window == 0) return std::nullopt;
  const at::Tensor query = at::arange(block.query, block.query + block.num_queries, at::kLong).unsqueeze(1);
  const at::Tensor key = at::arange(block.key, block.key + block.num_keys, at::kLong);
  const at::Tensor hidden = key.gt(query).logical_or_(key.le(query.sub(block.window)));
  return at::zeros(hidden.sizes(), like).masked_fill_(hidden, -std::numeric_limits<double>::infinity());
}

}  // namespace braid::nn
