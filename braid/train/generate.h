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

using braid::operator<<;  // prints an enum as its word

struct GenerateOptions {
  std::string prompt;        // used by generate() only
  int num_tokens = 200;      // largest number of new tokens of a text, at least 1
  double temperature = 0.8;  // finite, at least 0; 0: always the most likely token
  int top_k = 0;             // choose among the k most likely tokens; 0: among all
  double top_p = 1;          // choose among the fewest most likely tokens of this total probability; above 0, at most 1
  uint64_t seed = 1;
  int pipe = 1, tensor = 1;             // ranks that share the model
  int threads = 0;                      // per rank; 0: as many as suit the model (spec/rank_hosts.h)
  std::string tokenizer;                // a value of data.tokenizer; empty: the one saved with the weights
  RanksAs ranks = RanksAs::Threads;     // threads of this process (one rank: the calling thread), or processes
  std::vector<std::string> stops = {};  // a text ends before the first of these; none is empty
  int num_samples = 1;                  // texts for each prompt
  int batch = 8;                        // number of texts generated at the same time, at least 1
  std::optional<DType> dtype = {};      // type to compute with; nullopt: the run's
};

enum class TextEnd { Stop, Length, EndOfText };
constexpr auto words(TextEnd) { return std::to_array<std::string_view>({"stop", "length", "end_of_text"}); }

struct GeneratedText {
  int prompt = 0, sample = 0;
  std::string text;         // continuation of the prompt, without the stop word that ended it
  std::vector<int> tokens;  // the chosen tokens, with those of a stop word, without end-of-text
  TextEnd end = TextEnd::Length;
  // Log probability of all chosen tokens, end-of-text included, in nats at temperature 1. 0 if the
  // GenerationListener has no on_end.
  double log_probability = 0;
};

struct GenerationSpeed {
  int64_t prompt_tokens = 0, new_tokens = 0;  // tokens read together in long passes; tokens read one pass each
  double prompt_seconds = 0, new_seconds = 0;
};

struct Generation {
  std::vector<GeneratedText> texts;  // by prompt, then by sample
  GenerationSpeed speed;
};

// Callbacks that run on the thread, or in the process, of rank 0. Either may be empty.
struct GenerationListener {
  // Called with each final piece of the text, if only one text is generated. A piece may end inside a character
  // (WholeCharacters).
  std::function<void(const std::string& piece)> on_piece = nullptr;
  std::function<void(const GeneratedText& text)> on_end = nullptr;  // called with each text when it ends
};

// Continues each of `prompts` num_samples times with the weights in `directory`, written on any mesh. A text ends at
// num_tokens, a stop word or end-of-text. An empty prompt stands for end-of-text. REQUIRES: `prompts` is not empty.
//
// Ids without a token in the tokenizer, as in a vocabulary padded to a round number, are never chosen.
//
// A token's scores come from the cached keys and values of at most model.context tokens before it. When the cache of a
// text is full, the last half of its tokens is read again as the beginning of a sequence. Random numbers depend on
// options.seed and on the text's number (prompt x num_samples + sample); the first text has those of generate().
//
// Prompts are read together, so other texts, `batch`, threads and ranks change scores by rounding. In float64 this
// changes a text only where the scores of two tokens differ by no more than rounding.
//
// Throws
//   IoError      if the checkpoint cannot be read;
//   ConfigError  if the checkpoint cannot be read; if the tokenizer cannot be read or has more tokens than the model
//                (key "data.tokenizer"); if the model cannot be split over the ranks (keys "mesh.pipe", "mesh.tensor");
//   RunError     if weights are not finite or too large to compute with, or if scores are not finite;
//   CommError    if a rank dies.
Generation generate_all(const std::string& directory, const std::vector<std::string>& prompts,
                        const GenerateOptions& options, const GenerationListener& listener = {});

// Returns one continuation of options.prompt, and calls `on_text` with its pieces. The same options give the same text.
std::string generate(const std::string& directory, const GenerateOptions& options,
                     const std::function<void(const std::string& piece)>& on_text);

}  // namespace braid::train
