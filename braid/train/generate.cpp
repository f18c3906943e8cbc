// Each token is a forward pass over the last `context` tokens.
#include "braid/train/generate.h"

#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/reading.h"
#include "braid/launch/launcher.h"
#include "braid/tokenize/tokenizer.h"
#include "braid/train/rank_model.h"
#include "braid/train/resume.h"
#include "braid/train/thread_count.h"
#include "braid/train/token_choice.h"

namespace braid {
namespace {

RunSpec one_rank_spec(const CheckpointInfo& info, const std::string& directory) {
  RunSpec spec = saved_spec(info, directory);
  spec.mesh = MeshSpec{};
  spec.pipeline.partition = "even";
  spec.pipeline.speeds.clear();
  spec.memory = MemorySpec{};
  spec.train.reduction = Reduction::Fast;
  spec.train.device = DeviceKind::Cpu;
  const std::string own = tokenizer_folder(directory);
  if (!own.empty()) spec.data.tokenizer = own;  // else "bytes", or format 1, which knows a path only
  return spec;
}

void load_weights(const std::string& directory, ParamStore& store) {
  std::vector<PlacedTensor> weights;
  for (const Parameter& param : store.params()) {
    weights.push_back({param.name, param.placement, param.master});
  }
  load_checkpoint(directory, weights);
  store.round_masters();
}

// Logits of the token after `tokens`, without the vocabulary's padding.
at::Tensor next_logits(RankModel& model, const RunSpec& spec, const std::vector<int>& tokens) {
  const size_t length = std::min<size_t>(tokens.size(), spec.model.context);
  const std::vector<int64_t> window(tokens.end() - static_cast<int64_t>(length), tokens.end());
  Microbatch microbatch;
  microbatch.training = false;
  microbatch.tokens_bt = at::tensor(window, at::kLong).unsqueeze(0);
  Passage passage(std::move(microbatch));
  const auto logits_btv = model.segments(0).forward(at::Tensor(), passage);
  return logits_btv.select(0, 0).select(0, static_cast<int64_t>(length) - 1).narrow(0, 0, spec.model.vocab);
}

// Subtracting the largest keeps a division by a tiny temperature from making infinities of all.
int chosen_token(const at::Tensor& logits, const GenerateOptions& options, double draw) {
  if (options.temperature <= 0) return static_cast<int>(logits.argmax().item<int64_t>());
  const int64_t k = options.top_k > 0 ? std::min<int64_t>(options.top_k, logits.numel()) : logits.numel();
  const auto [values, indices] = at::topk(logits.to(at::kDouble), k);
  const auto weights = at::softmax(values.sub(values.select(0, 0)).div(options.temperature), 0);
  const size_t place = chosen_place({weights.const_data_ptr<double>(), static_cast<size_t>(k)}, options.top_p, draw);
  return static_cast<int>(indices.const_data_ptr<int64_t>()[place]);
}

std::unique_ptr<Tokenizer> tokenizer_for(const RunSpec& spec, const GenerateOptions& options,
                                         const std::string& directory) {
  const std::string& name = options.tokenizer.empty() ? spec.data.tokenizer : options.tokenizer;
  auto tokenizer = make_tokenizer(name);
  if (tokenizer->vocab() > spec.model.vocab) {
    throw ConfigError({{"data.tokenizer", name,
                        cat("must have at most ", spec.model.vocab, " tokens, as many as the model of ", directory,
                            " knows, and has ", tokenizer->vocab()),
                        ""}});
  }
  return tokenizer;
}

// As they are computed with: the saved ones may be finite and lose that in a narrower type. Beyond float32's range the
// squares of float64 overflow too, in norms whose results look like any others.
void refuse_weights_not_finite(const ParamStore& store, const std::string& directory) {
  std::vector<std::string> names;
  for (const Parameter& param : store.params()) {
    if (!param.data.to(at::kFloat).isfinite().all().item<bool>()) names.push_back(param.name);
  }
  if (names.empty()) return;
  throw RunError(cat(directory, ": no text can be made of weights that are not finite, or too large to compute with: ",
                     joined(names)));
}

std::string continuation(RankModel& model, const RunSpec& spec, const Tokenizer& tokenizer,
                         const GenerateOptions& options, const std::function<void(const std::string&)>& on_text) {
  std::vector<int> tokens = tokenizer.encode(options.prompt);
  if (tokens.empty()) tokens.push_back(tokenizer.end_of_text());
  const uint64_t key = stream_key(options.seed, "generate");
  std::string text;
  for (int i = 0; i < options.num_tokens; ++i) {
    const auto logits = next_logits(model, spec, tokens);
    if (!logits.isfinite().all().item<bool>()) throw RunError("the model's scores of the next token are not finite");
    const int token = chosen_token(logits, options, uniform(key, static_cast<uint64_t>(i)));
    if (token == tokenizer.end_of_text() || token >= tokenizer.vocab()) break;
    tokens.push_back(token);
    const std::string piece = tokenizer.decode({token});
    text += piece;
    if (on_text) on_text(piece);
  }
  return text;
}

}  // namespace

std::string generate(const std::string& directory, const GenerateOptions& options,
                     const std::function<void(const std::string& piece)>& on_text) {
  const CheckpointReading reading(directory);
  verify_checkpoint(directory);
  const RunSpec spec = one_rank_spec(read_checkpoint_info(directory), directory);
  const auto tokenizer = tokenizer_for(spec, options, directory);
  refuse_other_shapes(spec.model, directory);
  const auto text = [&](Communicator& world) {
    const c10::AutoGradMode no_grad(false);
    const RankGroups groups(DeviceMesh(spec.mesh), StageLayout::single(), world);
    RankModel model(spec, groups);
    load_weights(directory, model.params());
    refuse_weights_not_finite(model.params(), directory);
    return continuation(model, spec, *tokenizer, options, on_text);
  };
  const int threads = options.threads > 0 ? options.threads : threads_to_generate(spec.model, num_cores());
  return values_by_rank(launcher(options.ranks), 1, text,
                        {.threads_per_rank = threads, .signals = SignalsTo::Caller})[0];
}

}  // namespace braid
