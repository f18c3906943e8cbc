// Texts in work at once: each has a place in a key-value cache, takes a token at a time, and makes room for the next
// when it ends. It knows no checkpoint and no ranks.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "braid/nn/block.h"
#include "braid/nn/key_value_cache.h"
#include "braid/tokenize/tokenizer.h"
#include "braid/train/generate.h"

namespace braid {

class TextBatch {
 public:
  // The scores of the tokens that follow on a forward's tokens_bt: b x 1 x v. It is handed a microbatch with a cache.
  using Forward = std::function<at::Tensor(Microbatch)>;
  struct Model {
    Forward forward;
    int64_t context = 0, vocab = 0;  // of the scores, the first `vocab` are the model's; others are padding
  };

  // All outlive this.
  TextBatch(const Model& model, const Tokenizer& tokenizer, const GenerateOptions& options);
  ~TextBatch();

  // As generate_all().
  Generation run(const std::vector<std::string>& prompts, const GenerationListener& listener);

 private:
  struct Text;
  void admit(const std::vector<std::string>& prompts);
  void read_long(const std::vector<Text*>& texts);
  void read_last(const std::vector<Text*>& texts);
  void take_token(Text& text);
  void end(Text& text, TextEnd how);
  void say(Text& text, const std::string& certain);
  at::Tensor scores(const at::Tensor& tokens_bt, std::vector<int64_t> places);

  const Model& model_;
  const Tokenizer& tokenizer_;
  const GenerateOptions& options_;
  at::Tensor unused_;  // ids below `vocab` that are no token of the tokenizer: never chosen
  const GenerationListener* listener_ = nullptr;
  std::unique_ptr<KeyValueCache> cache_;
  std::vector<std::unique_ptr<Text>> texts_;  // in work, by their place in the cache; null: a free place
  int next_ = 0, num_texts_ = 0;
  Generation made_;
};

}  // namespace braid
