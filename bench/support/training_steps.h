// Shared by benches of training steps: text of random tokens, threads of their own cores, medians.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "braid/base/seeds.h"
#include "braid/data/corpus.h"
#include "braid/spec/run_spec.h"

namespace bench {

// 2^20 tokens of spec.model.vocab, one document, nothing held out.
inline braid::data::Corpus random_corpus(const braid::RunSpec& spec) {
  std::vector<int> tokens(1 << 20);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int>(braid::random_bits(3, i) % spec.model.vocab);
  const auto source = std::make_shared<braid::data::MemoryTokens>(spec.model.vocab);
  source->add_document(tokens);
  braid::data::Corpus corpus;
  corpus.train.push_back({source});
  corpus.num_documents = 1;
  return corpus;
}

// The calling thread stays on `core`.
inline void pin_to_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

// 0 of nothing.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace bench
