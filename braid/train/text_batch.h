// Generates several texts at once. Each text has a place in a key-value cache and gets one token at a time. When a text
// ends, the next text takes its place.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "braid/nn/block.h"
#include "braid/nn/key_value_cache.h"
#include "braid/tokenize/tokenizer.h"
#include "braid/train/generate.h"

namespace braid::train {

class TextBatch {
 public:
  // Returns the logits after each stretch of the microbatch's cache: s x 1 x v.
  using Forward = std::function<at::Tensor(nn::Microbatch)>;
  struct Model {
    Forward forward;
    int64_t context = 0, vocab = 0;  // logits from `vocab` on are padding
  };

  // All arguments outlive this.
  TextBatch(const Model& model, const tokenize::Tokenizer& tokenizer, const GenerateOptions& options);
  ~TextBatch();

  // Generates the texts of `prompts`, as generate_all() does.
  Generation run(const std::vector<std::string>& prompts, const GenerationListener& listener);

 private:
  struct Text;
  std::vector<int> window_of(const std::string& prompt) const;
  int64_t longest_text() const;
  void admit();
  void read_windows(const std::vector<Text*>& texts);
  void read_together(std::span<Text* const> texts);
  void read_last(const std::vector<Text*>& texts);
  void take_token(Text& text);
  void end(Text& text, TextEnd how);
  void emit(Text& text, const std::string& certain);
  at::Tensor scores(const at::Tensor& tokens_bt);

  const Model& model_;
  const tokenize::Tokenizer& tokenizer_;
  const GenerateOptions& options_;
  at::Tensor unused_;  // ids below `vocab` without a token in the tokenizer, which are never chosen
  const GenerationListener* listener_ = nullptr;
  std::vector<std::vector<int>> windows_;     // last model_.context tokens of each prompt
  std::unique_ptr<nn::KeyValueCache> cache_;  // each place holds the longest text
  std::vector<std::unique_ptr<Text>> texts_;  // texts being generated, by their place in the cache; null: a free place
  int next_ = 0, num_texts_ = 0;
  Generation made_;
};

}  // namespace braid::train
