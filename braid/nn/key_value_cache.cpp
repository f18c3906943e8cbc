// The key-value cache. Its memory is not initialised: attention reads keys in whole blocks, but ignores the scores of
// positions that have not been written.
#include "braid/nn/key_value_cache.h"

#include <ATen/ops/tensor.h>

#include <utility>

#include "braid/base/errors.h"
#include "braid/nn/kernels/generation_rows.h"
#include "braid/param/block_cache.h"

namespace braid::nn {
namespace {

int64_t num_key_blocks(int64_t places) { return (places + kernels::kKeyBlock - 1) / kernels::kKeyBlock; }

}  // namespace

KeyValueCache::KeyValueCache(int64_t num_sequences, int64_t context)
    : context_(context), lengths_(static_cast<size_t>(num_sequences), 0) {
  check(num_sequences > 0 && context > 0, "a cache has room");
}

void KeyValueCache::copy(int64_t from, int64_t to) {
  const int64_t places = length(from);
  lengths_.at(static_cast<size_t>(to)) = places;
  if (from == to || places == 0) return;
  for (auto& [place, layer] : layers_) {
    for (const auto& [x, count] : {std::pair(layer.keys_skpdp, num_key_blocks(places)), {layer.values_sktd, places}}) {
      x.select(0, to).narrow(1, 0, count).copy_(x.select(0, from).narrow(1, 0, count));
    }
  }
}

void KeyValueCache::begin(std::vector<Stretch> stretches) {
  stretches_ = std::move(stretches);
  std::vector<int64_t> places, sequences, last;
  for (const auto& [sequence, count] : stretches_) {
    check(length(sequence) + count <= context_, "a sequence is no longer than the cache's context");
    for (int64_t t = 0; t < count; ++t) places.push_back(length(sequence) + t);
    sequences.insert(sequences.end(), static_cast<size_t>(count), sequence);
    last.push_back(static_cast<int64_t>(places.size()) - 1);
  }
  places_n_ = at::tensor(places, at::kLong);
  sequences_n_ = at::tensor(sequences, at::kLong);
  last_s_ = at::tensor(last, at::kLong);
}

void KeyValueCache::begin_step(const std::vector<int64_t>& sequences) {
  std::vector<Stretch> stretches;
  for (const int64_t sequence : sequences) stretches.push_back({sequence, 1});
  begin(std::move(stretches));
}

void KeyValueCache::end() {
  for (const auto& [sequence, count] : stretches_) lengths_.at(static_cast<size_t>(sequence)) += count;
  stretches_.clear();
}

const KeyValueCache::Layer& KeyValueCache::layer(const Place& place, const LayerShape& shape) {
  const auto [found, is_new] = layers_.try_emplace(place);
  if (!is_new) return found->second;
  const int64_t sequences = static_cast<int64_t>(lengths_.size()), blocks = num_key_blocks(context_);
  found->second = {param::empty_on_large_pages(
                       {sequences, shape.kv_heads, blocks, shape.head_width, kernels::kKeyBlock}, shape.options),
                   param::empty_on_large_pages(
                       {sequences, shape.kv_heads, context_, kernels::value_width(shape.head_width)}, shape.options)};
  return found->second;
}

}  // namespace braid::nn
