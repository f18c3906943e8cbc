// Windows of one shape share forward passes. The loss of a pass is the mean over the new tokens of its windows.
#include "braid/train/text_loss.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/data/masked_sequences.h"
#include "braid/data/sampler.h"
#include "braid/launch/launcher.h"
#include "braid/model/families.h"
#include "braid/spec/masking.h"
#include "braid/spec/rank_hosts.h"
#include "braid/tokenize/tokenizer_identity.h"
#include "braid/train/batch_source.h"
#include "braid/train/loaded_model.h"
#include "braid/train/resume.h"
#include "braid/train/texts_to_measure.h"

namespace braid::train {

std::vector<TextWindow> text_windows(int64_t num_tokens, int64_t context, int64_t stride) {
  check(0 < stride && stride <= context, "windows reach the next");
  std::vector<TextWindow> windows;
  int64_t predicted = 0;  // the last token that is predicted
  for (int64_t begin = 0; predicted + 1 < num_tokens; begin += stride) {
    const int64_t end = std::min(begin + context, num_tokens - 1);
    windows.push_back({begin, end - begin, end - predicted});
    predicted = end;
  }
  return windows;
}

template <class Pack>
void members(Pack& pack, TextLoss& loss) {
  pack(loss.path, loss.tokens, loss.bytes, loss.nats);
}

namespace {

// The number of bytes of text that a token stands for: after other tokens, and at the beginning of a text.
class TokenBytes {
 public:
  explicit TokenBytes(const tokenize::Tokenizer& tokenizer) : end_of_text_(tokenizer.end_of_text()) {
    for (int token = 0; token < tokenizer.vocab(); ++token) {
      within_.push_back(std::ssize(tokenizer.decode({token})));
      first_.push_back(std::ssize(tokenizer.decode_text({token})));
    }
  }
  int64_t of(int64_t token, int64_t before) const {
    return (before == end_of_text_ ? first_ : within_).at(static_cast<size_t>(token));
  }

 private:
  int64_t end_of_text_;
  std::vector<int64_t> within_, first_;
};

// The progress over all texts.
class TextLossMeter {
 public:
  TextLossMeter(const std::vector<TextToMeasure>& texts, std::function<void(const TextLossStatus&)> on_status)
      : on_status_(std::move(on_status)) {
    for (const TextToMeasure& text : texts) all_ += text.size;
  }
  void begin(double size) {
    before_ += size_;
    size_ = size;
  }
  void add(double share_of_text, int64_t tokens, double nats) {
    status_ = {all_ > 0 ? (before_ + size_ * share_of_text) / all_ : 1, status_.tokens + tokens, status_.nats + nats};
    if (on_status_) on_status_(status_);
  }

 private:
  const std::function<void(const TextLossStatus&)> on_status_;
  double all_ = 0, before_ = 0, size_ = 0;
  TextLossStatus status_;
};

int context_of(const TextLossOptions& options, const ModelSpec& model) {
  return options.context > 0 ? options.context : model.context;
}

class TextLossReader {
 public:
  TextLossReader(const LoadedModel& model, const TextLossOptions& options, const DataSpec& data,
                 const TokenBytes& token_bytes, const std::optional<data::MaskTokens>& mask)
      : model_(model), options_(options), data_(data), token_bytes_(token_bytes), mask_(mask) {}

  // Adds the loss of `tokens` to `loss`.
  void measure(const data::TokenSource& tokens, TextLossMeter& meter, TextLoss& loss) const {
    const int64_t context = context_of(options_, model_.spec()),
                  stride = options_.stride > 0 ? options_.stride : context;
    const auto windows = is_masked() ? masked_windows(tokens) : text_windows(tokens.num_tokens(), context, stride);
    for (size_t first = 0; first < windows.size();) {
      size_t end = first + 1;
      const auto same = [&](const TextWindow& w) {
        return w.length == windows[first].length && w.num_new == windows[first].num_new;
      };
      while (end < windows.size() && end - first < static_cast<size_t>(options_.batch) && same(windows[end])) ++end;
      const auto batch = std::span(windows).subspan(first, end - first);
      const TextLoss of_batch = is_masked() ? measure_masked(tokens, batch) : measure(tokens, batch);
      loss.tokens += of_batch.tokens, loss.bytes += of_batch.bytes, loss.nats += of_batch.nats;
      if (!std::isfinite(loss.nats)) throw RunError(cat("the loss on ", loss.path, " is not finite"));
      meter.add(static_cast<double>(end) / static_cast<double>(windows.size()), of_batch.tokens, of_batch.nats);
      first = end;
    }
  }

 private:
  bool is_masked() const { return spec::is_masked(model_.spec()); }

  // Returns windows of a sequence's text each, and the rest; of documents their pieces, sorted by length, since those
  // of one length are computed together. One token alone has no context and is left out.
  std::vector<TextWindow> masked_windows(const data::TokenSource& tokens) const {
    const int text = spec::text_tokens(context_of(options_, model_.spec()));
    std::vector<TextWindow> windows;
    if (data_.sequences == SequenceCut::Documents) {
      for (const auto& [begin, length] : data::document_pieces(tokens, text)) {
        if (length > 1) windows.push_back({begin, length, length});
      }
      std::ranges::stable_sort(windows, {}, &TextWindow::length);
      return windows;
    }
    for (int64_t begin = 0; begin + 1 < tokens.num_tokens(); begin += text) {
      const int64_t length = std::min<int64_t>(text, tokens.num_tokens() - begin);
      windows.push_back({begin, length, length});
    }
    return windows;
  }

  // Returns the masked loss of windows of one length, in one forward pass. The place of a window chooses its masks.
  TextLoss measure_masked(const data::TokenSource& tokens, std::span<const TextWindow> windows) const {
    const auto count = static_cast<int64_t>(windows.size());
    const int64_t length = windows[0].length;
    const data::MaskedShape shape{static_cast<int>(length) + 2,
                                  spec::num_masks(data_.mask_fraction, static_cast<int>(length))};
    nn::Microbatch microbatch;
    microbatch.tokens_bt = at::empty({count, shape.context}, at::kLong);
    microbatch.rows_bj = at::empty({count, shape.masks}, at::kLong);
    microbatch.targets_bt = at::empty({count, shape.masks}, at::kLong);
    if (data_.attention == AttentionMask::Document)
      microbatch.documents_bt = at::empty({count, shape.context}, at::kLong);
    TextLoss loss;
    std::vector<int64_t> text(length), documents(length);
    for (int64_t i = 0; i < count; ++i) {
      tokens.read(windows[i].begin, text);
      tokens.read_documents(windows[i].begin, documents);
      const uint64_t key = random_bits(evaluation_order(), static_cast<uint64_t>(windows[i].begin));
      const data::MaskedSequence sequence = data::masked_sequence(text, documents, shape, *mask_, key);
      const auto fill = [&](const at::Tensor& x, const std::vector<int64_t>& row) {
        if (x.defined()) std::ranges::copy(row, x.mutable_data_ptr<int64_t>() + i * std::ssize(row));
      };
      fill(microbatch.tokens_bt, sequence.tokens), fill(microbatch.documents_bt, sequence.documents);
      fill(microbatch.rows_bj, sequence.rows), fill(microbatch.targets_bt, sequence.targets);
      loss.tokens += shape.masks - std::ranges::count(sequence.targets, nn::kNoTarget);
    }
    if (loss.tokens == 0) return loss;
    microbatch.num_targets = static_cast<double>(loss.tokens);
    loss.nats = model_.forward(std::move(microbatch)).item<double>() * static_cast<double>(loss.tokens);
    return loss;
  }

  // Returns the loss of windows of one shape, in one forward pass.
  TextLoss measure(const data::TokenSource& tokens, std::span<const TextWindow> windows) const {
    const auto count = static_cast<int64_t>(windows.size());
    const int64_t length = windows[0].length, num_new = windows[0].num_new;
    nn::Microbatch microbatch;
    microbatch.tokens_bt = at::empty({count, length}, at::kLong);
    microbatch.targets_bt = at::empty({count, num_new}, at::kLong);
    if (data_.attention == AttentionMask::Document) microbatch.documents_bt = at::empty({count, length}, at::kLong);
    TextLoss loss;
    for (int64_t i = 0; i < count; ++i) {
      const TextWindow& window = windows[static_cast<size_t>(i)];
      const auto row = [&](const at::Tensor& x_bt) {
        return std::span(x_bt.mutable_data_ptr<int64_t>() + i * x_bt.size(1), static_cast<size_t>(x_bt.size(1)));
      };
      const auto inputs = row(microbatch.tokens_bt);
      tokens.read(window.begin, inputs);
      const auto targets = row(microbatch.targets_bt);
      tokens.read(window.begin + length + 1 - num_new, targets);
      if (microbatch.documents_bt.defined()) tokens.read_documents(window.begin, row(microbatch.documents_bt));
      const auto before = inputs.last(targets.size());
      for (size_t t = 0; t < targets.size(); ++t) loss.bytes += token_bytes_.of(targets[t], before[t]);
    }
    loss.tokens = count * num_new;
    loss.nats = model_.forward(std::move(microbatch)).item<double>() * static_cast<double>(loss.tokens);
    return loss;
  }

  const LoadedModel& model_;
  const TextLossOptions& options_;
  const DataSpec& data_;
  const TokenBytes& token_bytes_;
  const std::optional<data::MaskTokens>& mask_;
};

void refuse_without_masks(const ModelSpec& model, bool has_masks, const TextLossOptions& options) {
  if (!spec::is_masked(model)) return;
  std::vector<Problem> problems;
  if (!has_masks) problems.push_back({"data.tokenizer", options.tokenizer, tokenize::kNeedsMaskTokens, ""});
  if (options.stride > 0) {
    problems.push_back(
        {"--stride", cat(options.stride), "must be left out: windows of masked tokens do not overlap", "0"});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

void refuse_long_windows(const TextLossOptions& options, const ModelToLoad& load) {
  const ModelSpec& model = load.spec.model;
  const int context = context_of(options, model);
  std::vector<Problem> problems;
  if (context > model.context && model::family_of(model).traits.positions == model::PositionKind::Learned) {
    problems.push_back(
        {"--context", cat(context),
         cat("must be at most ", model.context, ": the model of ", load.directory, " has learned that many positions"),
         cat(model.context)});
  }
  if (options.stride > context) {
    const std::string whose = options.context > 0 ? "--context" : cat("the context of the model of ", load.directory);
    problems.push_back({"--stride", cat(options.stride), cat("must be at most ", context, ", ", whose), cat(context)});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

// Makes a model with rotary positions that takes windows of options.context tokens.
void set_context(const TextLossOptions& options, ModelToLoad& load) {
  const int trained = load.spec.model.context, context = context_of(options, load.spec.model);
  load.spec.model.context = std::max(trained, context);
  if (context != trained && options.on_note) {
    options.on_note(
        cat("evaluated with a context of ", context, " tokens; ", load.directory, " was trained with ", trained));
  }
}

}  // namespace

TextLoss total(const std::vector<TextLoss>& parts) {
  TextLoss all;
  for (const TextLoss& part : parts) all.tokens += part.tokens, all.bytes += part.bytes, all.nats += part.nats;
  return all;
}

std::vector<TextLoss> measure_text_loss(const std::string& directory, const TextLossOptions& options,
                                        const std::function<void(const TextLossStatus&)>& on_status) {
  const ckpt::CheckpointReading reading(directory);
  ModelToLoad load = model_to_load(directory, {.dtype = options.dtype, .pipe = options.pipe, .tensor = options.tensor});
  const auto tokenizer = tokenizer_of(load, options.tokenizer);
  refuse_other_shapes(load.spec.model, directory);
  refuse_long_windows(options, load);
  set_context(options, load);
  const auto texts = texts_to_measure(load, options, *tokenizer);
  const TokenBytes token_bytes(*tokenizer);
  const auto mask = tokenizer->mask_tokens();
  refuse_without_masks(load.spec.model, mask.has_value(), options);
  const auto losses = [&](Communicator& world) {
    const LoadedModel model(load, world);
    const TextLossReader reader(model, options, load.spec.data, token_bytes, mask);
    TextLossMeter meter(texts, world.rank() == 0 ? on_status : nullptr);
    std::vector<TextLoss> found;
    for (const TextToMeasure& text : texts) {
      meter.begin(text.size);
      found.push_back({text.path});
      for (const data::Tokens& tokens : text.open()) reader.measure(*tokens, meter, found.back());
    }
    return found;
  };
  const int num_ranks = options.pipe * options.tensor;
  const int threads =
      options.threads > 0 ? options.threads : spec::threads_to_generate(load.spec.model, num_cores() / num_ranks);
  return values_by_rank(
      launcher({.ranks = options.ranks}), num_ranks, losses,
      {.deadline_seconds = kNoDeadline, .threads_per_rank = threads, .signals = SignalsTo::Caller})[0];
}

}  // namespace braid::train
