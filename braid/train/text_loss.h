// The loss of a checkpoint's model on files, documents and prepared data.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "braid/spec/launch_spec.h"
#include "braid/spec/train_spec.h"
#include "braid/tokenize/document_reader.h"

namespace braid::train {

// The windows of a text whose loss is measured: tokens that are read together, and those that count.
//
//   context 4, stride 2     tokens    0 1 2 3 4 5 6 7 8
//   window 0                reads     0 1 2 3             predicts 1 2 3 4
//   window 1                reads         2 3 4 5         predicts         5 6
//   window 2                reads             4 5 6 7     predicts             7 8

// Reads tokens begin .. begin + length - 1; predicts the `num_new` that end with begin + length.
struct TextWindow {
  int64_t begin = 0, length = 0, num_new = 0;
  bool operator==(const TextWindow&) const = default;
};

// Those of `num_tokens` tokens, of which every one but the first is predicted once. 0 < stride <= context.
std::vector<TextWindow> text_windows(int64_t num_tokens, int64_t context, int64_t stride);

using braid::operator<<;  // enums as their words

enum class PreparedHalf { HeldOut, Train };
constexpr auto words(PreparedHalf) { return std::to_array<std::string_view>({"held-out", "train"}); }

struct TextLossOptions {
  std::vector<std::string> paths;         // text files, .jsonl files, folders of them, folders of prepared data
  std::vector<std::string> include = {};  // as data.include
  tokenize::ReaderOptions reading = {};   // of lines of .jsonl; nothing is held out
  std::optional<PreparedHalf> half = {};  // of prepared data; nothing: what is held out, where anything is
  int stride = 0;                         // tokens from window to window, at most the context; 0: the context
  int batch = 4;                          // windows in one forward pass, at least 1
  int pipe = 1, tensor = 1;               // ranks that share the model
  int threads = 0;                        // of each rank; 0: as many as suit the model (spec/rank_hosts.h)
  std::string tokenizer;                  // as data.tokenizer names one; empty: the one saved with the weights
  std::optional<DType> dtype = {};        // to compute with; nothing: the run's
  RanksAs ranks = RanksAs::Threads;       // threads of this process (one rank: the calling thread), or processes
  // Called with sentence() (document_list.h) for each folder in which files were passed over, by rank 0.
  std::function<void(const std::string&)> on_passed_over = nullptr;
};

// The loss of a file, or of a folder of prepared data.
struct TextLoss {
  std::string path;
  int64_t tokens = 0;  // predicted
  int64_t bytes = 0;   // of text that these stand for
  double nats = 0;     // of all of them together

  double per_token() const { return nats / static_cast<double>(tokens); }
  double per_byte() const { return nats / static_cast<double>(bytes); }
};
TextLoss total(const std::vector<TextLoss>& parts);

struct TextLossStatus {
  double share = 0;    // of all text, by its size
  int64_t tokens = 0;  // predicted so far
  double nats = 0;
};

// The loss of the weights in `directory`, written on any mesh, on each file that the paths lead to, in their order; of
// prepared data, on each folder. The documents of a file follow each other, each ended by end-of-text, as in training;
// data.attention is the run's. A window of up to model.context tokens is read at a time, and every token but a file's
// first is predicted once: by the first window that reaches it. With a stride below the context each but the first few
// tokens is predicted from at least context - stride before it.
//
// Rank 0 calls `on_status` on its thread or in its process. Throws ConfigError for a checkpoint, ranks (as
// generate_all()), tokenizer (key "data.tokenizer"), path (key "data.paths") or data prepared with another tokenizer;
// IoError; CommError when a rank dies; RunError for weights or a loss that are not finite.
std::vector<TextLoss> measure_text_loss(const std::string& directory, const TextLossOptions& options,
                                        const std::function<void(const TextLossStatus&)>& on_status);

}  // namespace braid::train
