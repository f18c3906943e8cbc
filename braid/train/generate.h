// Text from a checkpoint, on one rank.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace braid {

struct GenerateOptions {
  std::string prompt;
  int num_tokens = 200;
  double temperature = 0.8;  // 0: always the most likely token
  int top_k = 0;             // choose among the k most likely; 0: among all
  uint64_t seed = 1;
  int threads = 0;  // 0: as many as suit the model (thread_count.h)
};

// Continues `options.prompt` (end-of-text when empty) with the weights in `directory`, written on any mesh, until
// num_tokens or end-of-text, by the tokenizer saved with them wherever the run's own is today. `on_text` hears each
// piece as it comes; the return value is the continuation without the prompt. The same options give the same text.
// Throws IoError and ConfigError for a checkpoint that cannot be read.
std::string generate(const std::string& directory, const GenerateOptions& options,
                     const std::function<void(const std::string& piece)>& on_text);

}  // namespace braid
