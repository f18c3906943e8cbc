// Text generation from a checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "braid/spec/launch_spec.h"
#include "braid/spec/train_spec.h"

namespace braid::train {

using braid::operator<<;  // enums as their words

struct GenerateOptions {
  std::string prompt;        // of generate() alone
  int num_tokens = 200;      // of each text, at least 1
  double temperature = 0.8;  // finite, at least 0; 0: always the most likely token
  int top_k = 0;             // choose among the k most likely; 0: among all
  double top_p = 1;          // and among the most likely that have this probability together; above 0, at most 1
  uint64_t seed = 1;
  int pipe = 1, tensor = 1;             // ranks that share the model
  int threads = 0;                      // of each rank; 0: as many as suit the model (spec/rank_hosts.h)
  std::string tokenizer;                // as data.tokenizer names one; empty: the one saved with the weights
  RanksAs ranks = RanksAs::Threads;     // threads of this process (one rank: the calling thread), or processes
  std::vector<std::string> stops = {};  // a text ends before the first of these; none is empty
  int num_samples = 1;                  // texts for each prompt
  int batch = 8;                        // texts in work at once, at least 1
  std::optional<DType> dtype = {};      // to compute with; nothing: the run's
};

enum class TextEnd { Stop, Length, EndOfText };
constexpr auto words(TextEnd) { return std::to_array<std::string_view>({"stop", "length", "end_of_text"}); }

struct GeneratedText {
  int prompt = 0, sample = 0;
  std::string text;         // behind the prompt, without what ended it
  std::vector<int> tokens;  // those chosen, with those of a stop word, without end-of-text
  TextEnd end = TextEnd::Length;
  double log_probability = 0;  // of the tokens together, in nats, as the model says without temperature
};

struct GenerationSpeed {
  int64_t prompt_tokens = 0, new_tokens = 0;  // read in long passes; each by a pass of its own
  double prompt_seconds = 0, new_seconds = 0;
};

struct Generation {
  std::vector<GeneratedText> texts;  // by prompt, then by sample
  GenerationSpeed speed;
};

// Callbacks on the thread, or in the process, of rank 0. Either may be empty.
struct GenerationListener {
  // Called for a single text with bytes that are final, which need not be whole characters (WholeCharacters).
  std::function<void(const std::string& piece)> on_piece = nullptr;
  std::function<void(const GeneratedText& text)> on_end = nullptr;  // in the order in which they end
};

// Continues each of `prompts` (end-of-text when empty), which are not none, num_samples times with the weights in
// `directory`, written on any mesh, until num_tokens, a stop word or end-of-text.
//
// Ids that the tokenizer has no token for, as in a vocabulary padded to a round number, are never chosen.
//
// A token's scores come from the cached keys and values of at most model.context tokens before it. When the cache of a
// text is full, the last half of its tokens is read again as the beginning of a sequence. Random numbers depend on
// options.seed and on the text's number (prompt x num_samples + sample); the first text has those of generate().
// Prompts are read together, so other texts, `batch`, threads and ranks change scores by rounding. In float64 the texts
// stay the same, but for tokens whose scores are equal to rounding.
//
// Throws IoError and ConfigError for a checkpoint that cannot be read, ConfigError for a tokenizer that cannot or that
// has more tokens than the model (key "data.tokenizer") and for ranks that the model cannot be split over (keys
// "mesh.pipe", "mesh.tensor"), RunError for weights that are not finite or too large to compute with, and CommError
// when a rank dies.
Generation generate_all(const std::string& directory, const std::vector<std::string>& prompts,
                        const GenerateOptions& options, const GenerationListener& listener = {});

// One continuation of options.prompt, whose pieces `on_text` hears; the same options give the same text.
std::string generate(const std::string& directory, const GenerateOptions& options,
                     const std::function<void(const std::string& piece)>& on_text);

}  // namespace braid::train
