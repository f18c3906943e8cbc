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

// A window of a text whose loss is measured. It reads tokens begin .. begin + length - 1 together, and predicts the
// `num_new` tokens that end with token begin + length.
//
//   context 4, stride 2     tokens    0 1 2 3 4 5 6 7 8
//   window 0                reads     0 1 2 3             predicts 1 2 3 4
//   window 1                reads         2 3 4 5         predicts         5 6
//   window 2                reads             4 5 6 7     predicts             7 8
struct TextWindow {
  int64_t begin = 0, length = 0, num_new = 0;
  bool operator==(const TextWindow&) const = default;
};

// Returns the windows of a text of `num_tokens` tokens. Every token but the first is predicted once.
// REQUIRES: 0 < stride <= context.
std::vector<TextWindow> text_windows(int64_t num_tokens, int64_t context, int64_t stride);

using braid::operator<<;  // prints an enum as its word

enum class PreparedHalf { HeldOut, Train };
constexpr auto words(PreparedHalf) { return std::to_array<std::string_view>({"held-out", "train"}); }

struct TextLossOptions {
  std::vector<std::string> paths;         // text files, .jsonl files, folders of them, folders of prepared data
  std::vector<std::string> include = {};  // a value of data.include
  tokenize::ReaderOptions reading = {};   // for lines of .jsonl files; no document is held out
  std::optional<PreparedHalf> half = {};  // half of prepared data; nullopt: held-out if there is any, else train
  int context = 0;                        // tokens of a window; 0: the model's. More only with rotary positions
  int stride = 0;                         // tokens from window to window, at most the context; 0: the context
  int batch = 4;                          // windows in one forward pass, at least 1
  int pipe = 1, tensor = 1;               // ranks that share the model
  int threads = 0;                        // per rank; 0: as many as suit the model (spec/rank_hosts.h)
  std::string tokenizer;                  // a value of data.tokenizer; empty: the one saved with the weights
  std::optional<DType> dtype = {};        // type to compute with; nullopt: the run's
  RanksAs ranks = RanksAs::Threads;       // threads of this process (one rank: the calling thread), or processes
  // Called with a sentence for each path in which files were passed over (document_list.h), and if the context is not
  // the one of training. The calling thread calls it before ranks start.
  std::function<void(const std::string&)> on_note = nullptr;
};

// The loss of a file, or of a folder of prepared data.
struct TextLoss {
  std::string path;
  int64_t tokens = 0;  // number of predicted tokens
  int64_t bytes = 0;   // size of their text
  double nats = 0;     // sum of their losses

  double per_token() const { return nats / static_cast<double>(tokens); }
  double per_byte() const { return nats / static_cast<double>(bytes); }
};
TextLoss total(const std::vector<TextLoss>& parts);

struct TextLossStatus {
  double share = 0;    // measured fraction of all text, by size
  int64_t tokens = 0;  // number of tokens predicted so far
  double nats = 0;     // sum of their losses
};

// Returns the loss of the weights in `directory`, written on any mesh, on each file that options.paths lead to, in
// their order. Each folder of prepared data has one loss. Rank 0 calls `on_status` on its thread, or in its process.
//
// The documents of a file follow each other, each ended by end-of-text, as in training; data.attention is the run's.
// A window of up to options.context tokens is read at a time. Every token but a file's first is predicted once, by the
// first window that reaches it. With a stride below the context, all but the first few tokens are predicted from at
// least context - stride tokens before them.
//
// For a masked family, a window has the tokens of one sequence (data/masked_sequences.h), and the loss is that of the
// tokens chosen there, always the same ones. Windows do not overlap, and bytes are not counted.
//
// Throws
//   IoError      if a file cannot be read;
//   ConfigError  for a wrong checkpoint or wrong ranks (as generate_all()), tokenizer (key "data.tokenizer"), context
//                (key "--context"), stride (key "--stride"), path, or data prepared with another tokenizer (key
//                "data.paths");
//   RunError     if weights or a loss are not finite;
//   CommError    if a rank dies.
std::vector<TextLoss> measure_text_loss(const std::string& directory, const TextLossOptions& options,
                                        const std::function<void(const TextLossStatus&)>& on_status);

}  // namespace braid::train
