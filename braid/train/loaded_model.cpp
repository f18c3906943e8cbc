// The run's configuration, with what only training on many ranks needs taken out.
#include "braid/train/loaded_model.h"

#include <c10/core/GradMode.h>

#include "braid/base/counted.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/param/large_pages.h"
#include "braid/spec/fields.h"
#include "braid/train/resume.h"

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

}  // namespace

ModelToLoad model_to_load(const std::string& directory, std::optional<DType> dtype) {
  verify_checkpoint(directory);
  ModelToLoad load{directory, one_rank_spec(read_checkpoint_info(directory), directory), tokenizer_folder(directory)};
  if (load.tokenizer.empty() && load.spec.data.tokenizer == "bytes") load.tokenizer = "bytes";
  if (dtype) load.spec.train.dtype = *dtype;
  return load;
}

std::string tokenizer_place(const ModelToLoad& load, const std::string& name) {
  if (!name.empty()) return name;
  if (!load.tokenizer.empty()) return load.tokenizer;
  throw ConfigError({{"data.tokenizer", "",
                      cat("must be given: ", load.directory, " was saved without its tokenizer, which was at ",
                          toml_text(load.spec.data.tokenizer), " (a path that a checkpoint names is not opened)"),
                      ""}});
}

std::unique_ptr<Tokenizer> tokenizer_of(const ModelToLoad& load, const std::string& name) {
  const std::string place = tokenizer_place(load, name);
  auto tokenizer = make_tokenizer(place);
  if (tokenizer->vocab() > load.spec.model.vocab) {
    throw ConfigError({{"data.tokenizer", place,
                        cat("must have at most ", counted(load.spec.model.vocab, "token"), ", as many as the model of ",
                            load.directory, " knows, and has ", tokenizer->vocab()),
                        ""}});
  }
  return tokenizer;
}

RanksAs saved_ranks(const std::string& directory) {
  const CheckpointInfo info = read_checkpoint_info(directory);
  return info.config_toml.empty() ? RanksAs::Threads : saved_spec(info, directory).run.ranks;
}

LoadedModel::LoadedModel(const ModelToLoad& load, Communicator& world)
    : spec_(load.spec), groups_(DeviceMesh(spec_.mesh), StageLayout::single(), world), model_(spec_, groups_) {
  const c10::AutoGradMode no_grad(false);
  load_weights(load.directory, model_.params());
  refuse_weights_not_finite(model_.params(), load.directory);
  ParamStore& store = model_.params();
  const at::Tensor weights = empty_on_large_pages(store.flat_data().sizes(), store.flat_data().options());
  store.bind(weights.copy_(store.flat_data()));
}

at::Tensor LoadedModel::forward(Microbatch microbatch) const {
  const c10::AutoGradMode no_grad(false);
  microbatch.training = false;
  Passage passage(std::move(microbatch));
  return model_.segments(0).forward(at::Tensor(), passage);
}

}  // namespace braid
