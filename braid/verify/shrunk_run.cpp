// Each size is the smallest that keeps its divisors.
#include "braid/verify/shrunk_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/model/families.h"
#include "braid/model/shape.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/partition.h"
#include "braid/spec/problems.h"
#include "braid/spec/recompute.h"

namespace braid::verify {
namespace {

constexpr int kHeadWidth = 8, kFeatures = 12, kContext = 12, kVocab = 61, kMicrobatch = 2;
constexpr int kMostTried = 64;
constexpr const char* kSynthetic = "synthetic";
constexpr double kInitStd = 0.2, kBucketMb = 0.02, kFirstBucketMb = 0.01;

int rounded_up(int number, int divisor) { return (number + divisor - 1) / divisor * divisor; }

// Two key heads on each tensor rank if it has several, and two queries for each if they are shared.
void shrink_heads(ModelSpec& model, int ranks) {
  const int keys = model::num_kv_heads(model), group = model.heads / keys;
  const int few_keys = keys >= ranks ? ranks * std::min(keys / ranks, 2) : keys;
  const int few_group = keys >= ranks ? std::min(group, 2) : std::max(1, ranks / keys);
  const bool names_width = model.head_width > 0, names_keys = model.kv_heads > 0;
  model.heads = few_keys * few_group;
  model.kv_heads = names_keys ? few_keys : 0;
  model.head_width = names_width ? kHeadWidth : 0;
  model.width = model.heads * kHeadWidth;
  model.ffn = rounded_up(kFeatures, ranks) * 2;
}

void shrink_tokens(RunSpec& run) {
  ModelSpec& model = run.model;
  model.context = std::min(model.context, std::max(kContext, 2 * run.mesh.tensor));
  const int halves = run.mesh.context > 1 ? 2 : 1;  // of a context rank's tokens
  model.context = rounded_up(model.context, run.mesh.tensor * run.mesh.context * halves);
  if (model.window > 0) model.window = std::min(model.window, model.context / 3);
  model.vocab = model.vocab > 0 ? std::min(model.vocab, kVocab) : kVocab;
  model.vocab_multiple = std::min(model.vocab_multiple, 4);
}

int most_blocks_of_segment(const MemorySpec& memory) {
  int most = 1;
  for (const std::string& entry : spec::recompute_entries(memory)) {
    if (const auto policy = spec::recompute_policy(entry)) most = std::max(most, policy->blocks);
  }
  return most;
}

// The number of layers: at least two kinds of them, and for segments of recomputation one and a half on each stage.
int few_layers(const RunSpec& run) {
  const int stages = std::max(1, spec::num_stages(run)), segment = most_blocks_of_segment(run.memory);
  const int of_stage = segment > 1 ? segment + 1 : 1;
  return std::max({2, stages * of_stage, std::min(run.model.layers, 2 * stages)});
}

// Some numbers from `few` on, then `all`.
std::vector<int> numbers_up_to(int few, int all) {
  std::vector<int> numbers;
  for (int number = std::min(few, all); number <= all && number < few + kMostTried; ++number) numbers.push_back(number);
  if (numbers.back() != all) numbers.push_back(all);
  return numbers;
}

}  // namespace

RunSpec shrunk(const RunSpec& run) {
  RunSpec small = run;
  shrink_heads(small.model, run.mesh.tensor);
  shrink_tokens(small);
  small.model.init_std = kInitStd;
  small.train.init.clear();
  small.data.paths = {kSynthetic};
  small.data.weights.clear();
  small.data.tokenizer = kSynthetic;  // that of bytes has a larger vocabulary
  small.sync.bucket_mb = std::min(run.sync.bucket_mb, kBucketMb);
  small.sync.first_bucket_mb = std::min(run.sync.first_bucket_mb, kFirstBucketMb);
  small.train.microbatch = std::min(run.train.microbatch, kMicrobatch);
  const int global = run.train.batch / run.train.microbatch;
  const int unit = static_cast<int>(std::min<int64_t>(global, spec::batch_unit(run) / run.train.microbatch));
  const bool keeps_layers = !spec::is_even(run.pipeline) && !spec::is_measured(run.pipeline);
  for (const int units : numbers_up_to(2, global / unit)) {
    small.train.batch = units * unit * small.train.microbatch;
    for (const int layers : numbers_up_to(keeps_layers ? run.model.layers : few_layers(small), run.model.layers)) {
      small.model.layers = layers;
      if (!spec::has_problems(small, spec::any_hosts())) return small;
    }
  }
  throw ConfigError(spec::problems(small, spec::any_hosts()));
}

data::Corpus synthetic_corpus(const RunSpec& run, int steps) {
  const auto vocab = static_cast<uint64_t>(run.model.vocab);
  const int64_t needed = int64_t{run.train.batch} * (steps + 2) * (run.model.context + 1);
  const uint64_t key = stream_key(run.train.seed, "synthetic corpus");
  const auto tokens = std::make_shared<data::MemoryTokens>(run.model.vocab);
  uint64_t draw = 0;
  int documents = 0;
  while (tokens->num_tokens() < needed) {
    const uint64_t longest = 2 * static_cast<uint64_t>(run.model.context);
    std::vector<int> document(2 + random_bits(key, draw++) % longest);
    for (int& token : document) token = static_cast<int>(random_bits(key, draw++) % vocab);
    tokens->add_document(document);
    ++documents;
  }
  data::Corpus corpus{{{tokens, 1}}, {}, documents};
  const int last = run.model.vocab - 1;
  corpus.mask_tokens = {last, last - 1, last - 2, last - 3, {}};
  for (int token = 0; token + 4 < run.model.vocab; ++token) corpus.mask_tokens->ordinary.push_back(token);
  return corpus;
}

}  // namespace braid::verify
