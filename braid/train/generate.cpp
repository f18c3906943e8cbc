// All ranks choose the same tokens from the same scores; rank 0 reports them.
#include "braid/train/generate.h"

#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/launch/launcher.h"
#include "braid/model/families.h"
#include "braid/nn/opaque.h"
#include "braid/spec/masking.h"
#include "braid/spec/rank_hosts.h"
#include "braid/train/loaded_model.h"
#include "braid/train/resume.h"
#include "braid/train/text_batch.h"

namespace braid::train {

template <class Pack>
void members(Pack& pack, GeneratedText& text) {
  pack(text.prompt, text.sample, text.text, text.tokens, text.end, text.log_probability);
}

template <class Pack>
void members(Pack& pack, Generation& made) {
  pack(made.texts, made.speed);
}

namespace {

void refuse_masked(const ModelSpec& model, const std::string& directory) {
  if (!spec::is_masked(model)) return;
  throw ConfigError(
      {{"model.family", cat(model.family),
        cat("must be a causal family to continue text, and ", directory, " predicts masked tokens"), ""}});
}

void refuse_functions_of_tokens_together(const ModelSpec& model, const std::string& directory) {
  for (const model::BlockGraph& block : model::graph_of(model).kinds) {
    for (const model::Op& op : block.ops) {
      if (!op.function || op.function->tokens == model::OpaqueTokens::Apart) continue;
      throw ConfigError({{"model.family", cat(model.family),
                          cat("must have no function of tokens together to continue text, since new tokens are "
                              "computed alone, and ",
                              directory, " has opaque ", model::rule_text(block, op),
                              "; a function of each token by itself says OpaqueTokens::Apart"),
                          ""}});
    }
  }
}

}  // namespace

Generation generate_all(const std::string& directory, const std::vector<std::string>& prompts,
                        const GenerateOptions& options, const GenerationListener& listener) {
  const ckpt::CheckpointReading reading(directory);
  const ModelToLoad load =
      model_to_load(directory, {.dtype = options.dtype, .pipe = options.pipe, .tensor = options.tensor});
  const ModelSpec& shape = load.spec.model;
  refuse_masked(shape, directory);
  refuse_functions_of_tokens_together(shape, directory);
  const auto tokenizer = tokenizer_of(load, options.tokenizer);
  refuse_other_shapes(shape, directory);
  const auto texts = [&](Communicator& world) {
    const LoadedModel model(load, world);
    const TextBatch::Model computes{[&](nn::Microbatch microbatch) { return model.forward(std::move(microbatch)); },
                                    shape.context, shape.vocab};
    return TextBatch(computes, *tokenizer, options).run(prompts, world.rank() == 0 ? listener : GenerationListener{});
  };
  const auto num_ranks = options.pipe * options.tensor;
  const int threads = options.threads > 0 ? options.threads : spec::threads_to_generate(shape, num_cores() / num_ranks);
  return values_by_rank(
      launcher({.ranks = options.ranks}), num_ranks, texts,
      {.deadline_seconds = kNoDeadline, .threads_per_rank = threads, .signals = SignalsTo::Caller})[0];
}

std::string generate(const std::string& directory, const GenerateOptions& options,
                     const std::function<void(const std::string& piece)>& on_text) {
  GenerateOptions single = options;
  single.num_samples = 1;
  return generate_all(directory, {options.prompt}, single, {on_text, nullptr}).texts.at(0).text;
}

}  // namespace braid::train
