// Runs stages one after another: a forward of generation has no other work to overlap with.
#include "braid/train/loaded_model.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/manifest.h"
#include "braid/comm/op_name.h"
#include "braid/model/shape.h"
#include "braid/nn/key_value_cache.h"
#include "braid/param/block_cache.h"
#include "braid/schedule/generators.h"
#include "braid/spec/fields.h"
#include "braid/spec/mesh_spec.h"
#include "braid/spec/problems.h"
#include "braid/train/resume.h"
#include "braid/train/saved_tensors.h"

namespace braid::train {
namespace {

// Returns the saved configuration without the settings that only training needs.
RunSpec spec_to_compute(const ckpt::CheckpointInfo& info, const std::string& directory, const LoadOptions& options) {
  RunSpec spec = saved_spec(info, directory);
  spec.mesh = MeshSpec{.pipe = options.pipe, .tensor = options.tensor};
  spec.pipeline = PipelineSpec{.schedule = "gpipe"};
  spec.memory = MemorySpec{};
  spec.sync = SyncSpec{};
  std::erase_if(spec.optimizer.groups, [](const ParameterGroup& group) { return group.frozen; });
  spec.train.reduction = Reduction::Fast;
  spec.train.device = DeviceKind::Cpu;
  if (options.dtype) spec.train.dtype = *options.dtype;
  return spec;
}

// Throws the problems that a single rank would not have. All other problems concern training.
void refuse_impossible_mesh(const RunSpec& spec) {
  RunSpec alone = spec;
  alone.mesh = {};
  const std::vector<Problem> known = spec::problems(alone);
  std::vector<Problem> found;
  for (const Problem& problem : spec::problems(spec)) {
    const auto is_same = [&](const Problem& other) { return other.key == problem.key && other.rule == problem.rule; };
    if (std::ranges::none_of(known, is_same)) found.push_back(problem);
  }
  if (!found.empty()) throw ConfigError(std::move(found));
}

StageLayout one_stage_per_rank(int ranks) {
  return ranks == 1 ? StageLayout::single() : StageLayout(make_schedule("gpipe", {.ranks = ranks, .microbatches = 1}));
}

void load_weights(const std::string& directory, param::ParamStore& store) {
  std::vector<ckpt::PlacedTensor> weights;
  for (const param::Parameter& param : store.params()) {
    weights.push_back({param.name, param.placement, param.master});
  }
  const auto read = in_saved_types(weights, ckpt::read_manifest(ckpt::found_directory(directory)), std::nullopt);
  ckpt::load_checkpoint(directory, read);
  take_read(read, weights);
  store.round_masters();
}

// Checks the weights in the type of the computation: finite saved weights may overflow in a narrower type. Also refuses
// float64 weights beyond float32's range, since their squares may overflow in a norm, whose result looks like any
// other.
void refuse_weights_not_finite(const param::ParamStore& store, const std::string& directory) {
  std::vector<std::string> names;
  for (const param::Parameter& param : store.params()) {
    if (!param.data.to(at::kFloat).isfinite().all().item<bool>()) names.push_back(param.name);
  }
  if (names.empty()) return;
  throw RunError(cat(directory, ": no text can be made of weights that are not finite, or too large to compute with: ",
                     joined(names)));
}

}  // namespace

ModelToLoad model_to_load(const std::string& directory, const LoadOptions& options) {
  ckpt::verify_checkpoint(directory);
  ModelToLoad load{directory, spec_to_compute(ckpt::read_checkpoint_info(directory), directory, options),
                   ckpt::tokenizer_folder(directory)};
  if (load.tokenizer.empty() && load.spec.data.tokenizer == kByteTokenizer) load.tokenizer = kByteTokenizer;
  if (num_ranks(load.spec.mesh) > 1) refuse_impossible_mesh(load.spec);
  return load;
}

std::string tokenizer_place(const ModelToLoad& load, const std::string& name) {
  if (!name.empty()) return name;
  if (!load.tokenizer.empty()) return load.tokenizer;
  throw ConfigError({{"data.tokenizer", "",
                      cat("must be given: ", load.directory, " was saved without its tokenizer, which was at ",
                          spec::toml_text(load.spec.data.tokenizer), " (a path that a checkpoint names is not opened)"),
                      ""}});
}

std::unique_ptr<tokenize::Tokenizer> tokenizer_of(const ModelToLoad& load, const std::string& name) {
  const std::string place = tokenizer_place(load, name);
  auto tokenizer = tokenize::make_tokenizer(place);
  if (tokenizer->vocab() > load.spec.model.vocab) {
    throw ConfigError({{"data.tokenizer", place,
                        cat("must have at most ", counted(load.spec.model.vocab, "token"), ", as many as the model of ",
                            load.directory, " knows, and has ", tokenizer->vocab()),
                        ""}});
  }
  return tokenizer;
}

RanksAs saved_ranks(const std::string& directory) {
  const ckpt::CheckpointInfo info = ckpt::read_checkpoint_info(directory);
  return info.config_toml.empty() ? RanksAs::Threads : saved_spec(info, directory).run.ranks;
}

LoadedModel::LoadedModel(const ModelToLoad& load, Communicator& world)
    : spec_(load.spec),
      groups_(mesh::DeviceMesh(spec_.mesh), one_stage_per_rank(spec_.mesh.pipe), world),
      model_(spec_, groups_) {
  const c10::AutoGradMode no_grad(false);
  load_weights(load.directory, model_.params());
  refuse_weights_not_finite(model_.params(), load.directory);
  param::ParamStore& store = model_.params();
  const at::Tensor weights = param::empty_on_large_pages(store.flat_data().sizes(), store.flat_data().options());
  store.bind(weights.copy_(store.flat_data()));
}

at::Tensor LoadedModel::forward(nn::Microbatch microbatch) const {
  const c10::AutoGradMode no_grad(false);
  microbatch.training = false;
  const comm::CallName name("passage through the pipeline");
  Communicator& pipe = groups_.over({mesh::Axis::Pipe});
  const int stage = pipe.rank(), last = pipe.size() - 1;
  nn::Passage passage(microbatch);
  at::Tensor y = model_.segments(stage).forward(stage == 0 ? at::Tensor() : received(microbatch), passage);
  if (last == 0) return with_whole_vocab(y, microbatch);
  if (stage == last) {
    y = with_whole_vocab(y, microbatch).contiguous();
  } else {
    const P2p send{P2p::Kind::Send, y.contiguous(), stage + 1, 0};
    pipe.batch({&send, 1}).wait_host();
    y = result_buffer(microbatch);
  }
  pipe.broadcast(y, last).wait_host();
  return y;
}

// Receives the hidden state from the stage before.
at::Tensor LoadedModel::received(const nn::Microbatch& microbatch) const {
  const at::Tensor& tokens_bt = microbatch.tokens_bt;
  const at::Tensor x_btc =
      at::empty({tokens_bt.size(0), tokens_bt.size(1), spec_.model.width}, scalar_type(spec_.train.dtype));
  const comm::CallName name("passage through the pipeline");
  Communicator& pipe = groups_.over({mesh::Axis::Pipe});
  const P2p receive{P2p::Kind::Recv, x_btc, pipe.rank() - 1, 0};
  pipe.batch({&receive, 1}).wait_host();
  return x_btc;
}

at::Tensor LoadedModel::with_whole_vocab(const at::Tensor& y, const nn::Microbatch& microbatch) const {
  Communicator& tensor = groups_.over({mesh::Axis::Tensor});
  if (microbatch.targets_bt.defined() || tensor.size() == 1) return y;
  const comm::CallName name("logits");
  const at::Tensor shards_nstv = at::empty({tensor.size(), y.size(0), y.size(1), y.size(2)}, y.options());
  tensor.all_gather(shards_nstv, y.contiguous()).wait_host();
  return shards_nstv.movedim(0, 2).flatten(2, 3);
}

// Returns a buffer for the result of the last stage's with_whole_vocab().
at::Tensor LoadedModel::result_buffer(const nn::Microbatch& microbatch) const {
  const at::ScalarType type = scalar_type(spec_.train.dtype);
  if (microbatch.targets_bt.defined()) return at::empty({}, type == at::kDouble ? at::kDouble : at::kFloat);
  const int64_t vocab = model::padded_vocab(spec_.model, groups_.mesh.size(mesh::Axis::Tensor));
  if (microbatch.cache) return at::empty({std::ssize(microbatch.cache->stretches()), 1, vocab}, type);
  return at::empty({microbatch.tokens_bt.size(0), microbatch.tokens_bt.size(1), vocab}, type);
}

}  // namespace braid::train
