// Text from a checkpoint, on one rank.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "braid/spec/launch_spec.h"

namespace braid {

struct GenerateOptions {
  std::string prompt;
  int num_tokens = 200;      // at least 1
  double temperature = 0.8;  // finite, at least 0; 0: always the most likely token
  int top_k = 0;             // choose among the k most likely; 0: among all
  double top_p = 1;          // and among the most likely that have this probability together; above 0, at most 1
  uint64_t seed = 1;
  int threads = 0;                   // 0: as many as suit the model (thread_count.h)
  std::string tokenizer;             // as data.tokenizer names one; empty: the one saved with the weights
  RanksAs ranks = RanksAs::Threads;  // the calling thread, or a process of its own
};

// Continues `options.prompt` (end-of-text when empty) with the weights in `directory`, written on any mesh, until
// num_tokens or end-of-text, by the tokenizer saved with them wherever the run's own is today. `on_text` hears the
// bytes of each token as it comes, which need not be whole characters (WholeCharacters), on the thread or in the
// process of the rank; the return value is the continuation without the prompt. The same options give the same text.
// Throws IoError and ConfigError for a checkpoint that cannot be read, ConfigError (key "data.tokenizer") for a
// tokenizer that cannot or that has more tokens than the model, and RunError for weights not finite or too large to
// compute with.
std::string generate(const std::string& directory, const GenerateOptions& options,
                     const std::function<void(const std::string& piece)>& on_text);

}  // namespace braid
