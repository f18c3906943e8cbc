// Texts with an empty cache are read together (prefill), packed one behind another into one sequence of tokens. All
// others read their last token in one forward (decode), which computes each row by itself.
#include "braid/train/text_batch.h"

#include <ATen/ops/index_fill.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <limits>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/train/token_choice.h"

namespace braid::train {
namespace {

// Returns the key of a text's random numbers. The first text has the same key as the only text of a generation.
uint64_t text_key(uint64_t seed, int number) {
  return stream_key(seed, number == 0 ? std::string("generate") : cat("generate.", number));
}

at::Tensor row_of(const std::vector<int64_t>& tokens) { return at::tensor(tokens, at::kLong).unsqueeze(0); }

at::Tensor unused_ids(int64_t vocab, const tokenize::Tokenizer& tokenizer) {
  std::vector<int64_t> unused;
  for (int64_t id = 0; id < vocab; ++id) {
    const bool used = id == tokenizer.end_of_text() || (id < tokenizer.vocab() && tokenizer.has(static_cast<int>(id)));
    if (!used) unused.push_back(id);
  }
  return at::tensor(unused, at::kLong);
}

}  // namespace

struct TextBatch::Text {
  GeneratedText made;
  uint64_t key = 0;
  StopWords stops;
  bool begins = false;      // the prompt is empty, so the first generated token begins a text
  int64_t place = 0;        // place in the cache
  std::vector<int> window;  // the tokens from which the next one is predicted; those that were read are cached
  at::Tensor scores_v;      // scores of the next token, in float64
};

TextBatch::TextBatch(const Model& model, const tokenize::Tokenizer& tokenizer, const GenerateOptions& options)
    : model_(model), tokenizer_(tokenizer), options_(options), unused_(unused_ids(model.vocab, tokenizer)) {}
TextBatch::~TextBatch() = default;

Generation TextBatch::run(const std::vector<std::string>& prompts, const GenerationListener& listener) {
  listener_ = &listener;
  num_texts_ = static_cast<int>(prompts.size()) * options_.num_samples;
  made_ = {};
  made_.texts.resize(static_cast<size_t>(num_texts_));
  texts_.resize(static_cast<size_t>(std::min(options_.batch, num_texts_)));
  windows_.clear();
  for (const std::string& prompt : prompts) windows_.push_back(window_of(prompt));
  cache_ = std::make_unique<nn::KeyValueCache>(static_cast<int64_t>(texts_.size()), longest_text());
  next_ = 0;
  while (true) {
    admit();
    std::vector<Text*> unread, others;
    for (const auto& text : texts_) {
      if (text) (cache_->length(text->place) == 0 ? unread : others).push_back(text.get());
    }
    if (unread.empty() && others.empty()) break;
    read_windows(unread);
    read_last(others);
    for (Text* text : unread) take_token(*text);
    for (Text* text : others) take_token(*text);
  }
  return std::move(made_);
}

// Returns the tokens of a prompt that the model sees.
std::vector<int> TextBatch::window_of(const std::string& prompt) const {
  std::vector<int> window = tokenizer_.encode(prompt);
  const auto context = static_cast<size_t>(model_.context);
  if (window.size() > context) window.erase(window.begin(), window.end() - model_.context);
  return window;
}

// Returns the largest number of tokens of a text that are cached at a time.
int64_t TextBatch::longest_text() const {
  int64_t longest = 1;
  for (const std::vector<int>& window : windows_) longest = std::max(longest, std::ssize(window));
  return std::min(model_.context, longest + options_.num_tokens - 1);
}

// Gives free places to the next texts.
void TextBatch::admit() {
  for (size_t place = 0; place < texts_.size() && next_ < num_texts_; ++place) {
    if (texts_[place]) continue;
    const int number = next_++, prompt = number / options_.num_samples;
    auto text = std::make_unique<Text>(
        Text{{prompt, number % options_.num_samples}, text_key(options_.seed, number), StopWords(options_.stops)});
    text->place = static_cast<int64_t>(place);
    text->window = windows_[static_cast<size_t>(prompt)];
    text->begins = text->window.empty();
    if (text->begins) text->window.push_back(tokenizer_.end_of_text());
    cache_->forget(text->place);
    texts_[place] = std::move(text);
  }
}

// Runs one forward over tokens for which the cache has begun a pass.
at::Tensor TextBatch::scores(const at::Tensor& tokens_bt) {
  nn::Microbatch microbatch;
  microbatch.training = false;
  microbatch.tokens_bt = tokens_bt;
  microbatch.cache = cache_.get();
  const at::Tensor scores_bv = model_.forward(std::move(microbatch)).select(1, 0).narrow(1, 0, model_.vocab);
  cache_->end();
  return scores_bv.to(at::kDouble).contiguous();
}

// Texts of the same prompt follow each other: their window is read once and copied. A forward has at most
// `model.context` tokens, so reading texts together takes no more memory than reading one prompt of that length.
void TextBatch::read_windows(const std::vector<Text*>& texts) {
  const double begin = now_seconds();
  std::vector<Text*> different;
  for (Text* text : texts) {
    if (different.empty() || different.back()->window != text->window) different.push_back(text);
  }
  for (size_t first = 0, end = 0; first < different.size(); first = end) {
    size_t tokens = 0;
    while (end < different.size()) {
      tokens += different[end]->window.size();
      if (end > first && tokens > static_cast<size_t>(model_.context)) break;
      ++end;
    }
    read_together(std::span(different).subspan(first, end - first));
  }
  const Text* read = nullptr;
  for (Text* text : texts) {
    if (text->scores_v.defined()) {
      read = text;
      continue;
    }
    cache_->copy(read->place, text->place);
    text->scores_v = read->scores_v;
  }
  made_.speed.prompt_seconds += now_seconds() - begin;
}

void TextBatch::read_together(std::span<Text* const> texts) {
  std::vector<int64_t> tokens;
  std::vector<nn::KeyValueCache::Stretch> stretches;
  for (const Text* text : texts) {
    tokens.insert(tokens.end(), text->window.begin(), text->window.end());
    stretches.push_back({text->place, std::ssize(text->window)});
  }
  cache_->begin(std::move(stretches));
  const at::Tensor scores_sv = scores(row_of(tokens));
  for (size_t i = 0; i < texts.size(); ++i) texts[i]->scores_v = scores_sv.select(0, static_cast<int64_t>(i));
  made_.speed.prompt_tokens += std::ssize(tokens);
}

void TextBatch::read_last(const std::vector<Text*>& texts) {
  if (texts.empty()) return;
  const double begin = now_seconds();
  std::vector<int64_t> tokens, places;
  for (const Text* text : texts) {
    tokens.push_back(text->window.back());
    places.push_back(text->place);
  }
  cache_->begin_step(places);
  const at::Tensor scores_bv = scores(row_of(tokens).view({-1, 1}));
  for (size_t i = 0; i < texts.size(); ++i) texts[i]->scores_v = scores_bv.select(0, static_cast<int64_t>(i));
  made_.speed.new_tokens += static_cast<int64_t>(texts.size());
  made_.speed.new_seconds += now_seconds() - begin;
}

void TextBatch::take_token(Text& text) {
  GeneratedText& made = text.made;
  if (!text.scores_v.isfinite().all().item<bool>()) {
    throw RunError("the model's scores of the next token are not finite");
  }
  const auto numbers = [&](const at::Tensor& scores_v) {
    return std::span(scores_v.const_data_ptr<double>(), static_cast<size_t>(model_.vocab));
  };
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const at::Tensor choosable_v =
      unused_.numel() > 0 ? at::index_fill(text.scores_v, 0, unused_, kNever) : text.scores_v;
  const double draw = uniform(text.key, made.tokens.size());
  const auto token = static_cast<int>(
      chosen_token(numbers(choosable_v), {options_.temperature, options_.top_k, options_.top_p}, draw));
  if (listener_->on_end) made.log_probability += log_probability(numbers(text.scores_v), static_cast<size_t>(token));
  if (token == tokenizer_.end_of_text()) return end(text, TextEnd::EndOfText);
  const bool begins = text.begins && made.tokens.empty();
  made.tokens.push_back(token);
  emit(text, text.stops.add(begins ? tokenizer_.decode_text({token}) : tokenizer_.decode({token})));
  if (text.stops.met()) return end(text, TextEnd::Stop);
  if (static_cast<int>(made.tokens.size()) == options_.num_tokens) return end(text, TextEnd::Length);
  text.window.push_back(token);
  if (cache_->length(text.place) < model_.context) return;
  text.window.erase(text.window.begin(), text.window.end() - std::max<int64_t>(1, model_.context / 2));
  text.scores_v = at::Tensor();
  cache_->forget(text.place);
}

void TextBatch::emit(Text& text, const std::string& certain) {
  text.made.text += certain;
  if (num_texts_ == 1 && listener_->on_piece && !certain.empty()) listener_->on_piece(certain);
}

void TextBatch::end(Text& text, TextEnd how) {
  if (how != TextEnd::Stop) emit(text, text.stops.end());
  GeneratedText& made = text.made;
  made.end = how;
  if (listener_->on_end) listener_->on_end(made);
  const size_t number =
      static_cast<size_t>(made.prompt) * static_cast<size_t>(options_.num_samples) + static_cast<size_t>(made.sample);
  made_.texts[number] = std::move(made);
  texts_[static_cast<size_t>(text.place)] = nullptr;
}

}  // namespace braid::train
