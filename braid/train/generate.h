// Text from a checkpoint, on one rank.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "braid/spec/launch_spec.h"
#include "braid/spec/train_spec.h"

namespace braid {

struct GenerateOptions {
  std::string prompt;        // of generate() alone
  int num_tokens = 200;      // of each text, at least 1
  double temperature = 0.8;  // finite, at least 0; 0: always the most likely token
  int top_k = 0;             // choose among the k most likely; 0: among all
  double top_p = 1;          // and among the most likely that have this probability together; above 0, at most 1
  uint64_t seed = 1;
  int threads = 0;                      // 0: as many as suit the model (spec/thread_count.h)
  std::string tokenizer;                // as data.tokenizer names one; empty: the one saved with the weights
  RanksAs ranks = RanksAs::Threads;     // the calling thread, or a process of its own
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

// Whoever hears texts come, on the thread or in the process of the rank. Either may be empty.
struct GenerationListener {
  // Of a single text: bytes that are certain by now, which need not be whole characters (WholeCharacters).
  std::function<void(const std::string& piece)> on_piece = nullptr;
  std::function<void(const GeneratedText& text)> on_end = nullptr;  // in the order in which they end
};

// Continues each of `prompts` (end-of-text when empty), which are not none, num_samples times with the weights in
// `directory`, written on any mesh, until num_tokens, a stop word or end-of-text.
//
// Ids that the tokenizer has no token for, as in a vocabulary padded to a round number, are never chosen.
//
// A token's scores come from what the model keeps of the tokens before it: of at most model.context of them. Where
// that many have been read and there is one more, the last half of them, with it, is read anew as the beginning of a
// sequence. Random numbers depend on options.seed and on the text's number (prompt x num_samples + sample); the first
// text has those of generate(). A text does not depend on the others, nor on `batch`: neither in its scores' bits, as
// long as the number of threads is the same.
//
// Throws IoError and ConfigError for a checkpoint that cannot be read, ConfigError (key "data.tokenizer") for a
// tokenizer that cannot or that has more tokens than the model, and RunError for weights not finite or too large to
// compute with.
Generation generate_all(const std::string& directory, const std::vector<std::string>& prompts,
                        const GenerateOptions& options, const GenerationListener& listener = {});

// One continuation of options.prompt, whose pieces `on_text` hears; the same options give the same text.
std::string generate(const std::string& directory, const GenerateOptions& options,
                     const std::function<void(const std::string& piece)>& on_text);

}  // namespace braid
