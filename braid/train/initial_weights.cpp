// Reads initial weights from a checkpoint or a Hugging Face directory, both as boxes of named tensors.
#include "braid/train/initial_weights.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <functional>

#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/checkpoint_reader.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/data/prepared_corpus.h"
#include "braid/model/families.h"
#include "braid/model/shape.h"
#include "braid/spec/fields.h"
#include "braid/tokenize/tokenizer.h"
#include "braid/tokenize/tokenizer_identity.h"
#include "braid/train/resume.h"
#include "braid/train/saved_tensors.h"
#include "braid/weights/from_hf.h"
#include "braid/weights/hf_directory.h"

namespace braid::train {
namespace {

// The tokenizer of a run's data.
struct TokenizerInUse {
  std::string key;   // configuration key that chooses the tokenizer
  std::string name;  // "bytes" or a path
  uint64_t identity = 0;
};

TokenizerInUse tokenizer_in_use(const DataSpec& data) {
  const std::vector<data::PreparedFolder> folders = data::prepared_folders(data.paths);
  if (!folders.empty()) return {"data.paths", data::tokenizer_name(folders[0]), folders[0].manifest.tokenizer.identity};
  return {"data.tokenizer", data.tokenizer, tokenize::tokenizer_identity(data.tokenizer)};
}

}  // namespace

std::string tokenizer_of_weights(const std::string& init) {
  if (weights::is_hf_directory(init)) return weights::has_tokenizer(init) ? init : "";
  const std::string checkpoint = ckpt::chosen_checkpoint(init).directory;
  if (checkpoint.empty()) return "";
  const std::string saved = ckpt::tokenizer_folder(checkpoint);
  if (!saved.empty()) return saved;
  return ckpt::read_checkpoint_info(checkpoint).tokenizer == kByteTokenizer ? kByteTokenizer : "";
}

std::vector<Problem> initial_tokenizer_problems(const RunSpec& spec) {
  const std::string& init = spec.train.init;
  const std::string& named = spec.data.tokenizer;
  // A missing tokenizer is refused later, when it is opened.
  if (init.empty() || (named != kByteTokenizer && path_kind(named) == PathKind::Nothing)) return {};
  const TokenizerInUse used = tokenizer_in_use(spec.data);
  const std::string of_weights = tokenizer_of_weights(init);
  if (of_weights.empty()) {
    const int vocab = spec.model.vocab;
    if (used.name != kByteTokenizer || vocab == 0 || vocab == tokenize::byte_tokenizer()->vocab()) return {};
    const bool prepared = used.key == "data.paths";
    return {{used.key, prepared ? spec::toml_text(spec.data.paths) : spec::toml_text(used.name),
             cat("must be ", prepared ? "prepared with " : "", "the tokenizer of the weights of ", init,
                 ", whose vocabulary of ", counted(vocab, "token"), " is not that of \"bytes\"; ", init,
                 " has no tokenizer.json, nor vocab.json with merges.txt: put them there, or name a tokenizer by ",
                 prepared ? "--tokenizer of braid data prepare" : "data.tokenizer"),
             ""}};
  }
  if (used.identity == tokenize::tokenizer_identity(of_weights)) return {};
  const std::string place = of_weights == init ? init : cat(init, " (", of_weights, ")");
  if (used.key == "data.tokenizer") {
    return {{used.key, spec::toml_text(used.name),
             cat("must be the tokenizer of the weights of ", place,
                 ": leave data.tokenizer out, or begin without train.init"),
             spec::toml_text(of_weights)}};
  }
  return {{used.key, spec::toml_text(spec.data.paths),
           cat("must be prepared with the tokenizer of the weights of ", place, ", not with ",
               spec::toml_text(used.name), ": prepare the data with --tokenizer ", of_weights),
           ""}};
}

namespace {

// Model keys on which the weights do not depend.
constexpr const char* kOpenModelKeys[] = {"model.preset", "model.config", "model.vocab_multiple", "model.dropout",
                                          "model.init_std"};

std::string checkpoint_at(const std::string& path) {
  const ckpt::CheckpointChoice choice = ckpt::chosen_checkpoint(path);
  if (!choice.directory.empty()) return choice.directory;
  const std::string faults = choice.passed_over.empty() ? "" : ": " + joined(choice.passed_over, "; ");
  throw ConfigError(
      {{"train.init", spec::toml_text(path),
        cat("must be a Hugging Face directory (config.json and *.safetensors), a checkpoint or the folder "
            "of a run",
            faults),
        ""}});
}

RunSpec spec_of_checkpoint(const std::string& directory) {
  const ckpt::CheckpointInfo info = ckpt::read_checkpoint_info(directory);
  if (!info.config_toml.empty()) return saved_spec(info, directory);
  throw ConfigError({{"train.init", spec::toml_text(directory), "has no configuration that says its model", ""}});
}

bool is_open(const spec::Field& field, const ModelSpec& model) {
  if (field.key == "model.context") return model::family_of(model).traits.positions == model::PositionKind::Rotary;
  return std::find(std::begin(kOpenModelKeys), std::end(kOpenModelKeys), field.key) != std::end(kOpenModelKeys);
}

// Replaces each 0, which stands for a value that follows from other keys, by that value, so that values can be
// compared.
ModelSpec spelled_out(ModelSpec model) {
  model.kv_heads = model::num_kv_heads(model);
  model.head_width = model::head_width(model);
  model.ffn = model::ffn_width(model);
  return model;
}

std::vector<Problem> differences(const RunSpec& spec, const ModelSpec& model, const std::string& place) {
  RunSpec is = spec, was = spec;
  is.model = spelled_out(spec.model);
  was.model = spelled_out(model);
  std::vector<Problem> found;
  for (const spec::Field& field : spec::fields()) {
    if (spec::section_of(field) != "model" || is_open(field, spec.model)) continue;
    const std::string have = spec::value_text(field, is), need = spec::value_text(field, was);
    if (have == need) continue;
    found.push_back({field.key, spec::value_text(field, spec),
                     cat("must be as in ", place, ", whose weights train.init takes"), need});
  }
  return found;
}

using ReadTensor = std::function<void(const ckpt::PlacedTensor&)>;

// Reads into `tensor`. If it is on a device or not of type `type`, reads through host memory of that type.
void read_into(const ckpt::PlacedTensor& tensor, at::ScalarType type, const ReadTensor& read) {
  const bool direct = tensor.local.is_cpu() && tensor.local.scalar_type() == type;
  if (direct) return read(tensor);
  ckpt::PlacedTensor host{tensor.name, tensor.placement, tensor.local.to(at::kCPU, type, false, /*copy=*/true)};
  read(host);
  tensor.local.copy_(host.local);
}

}  // namespace

ModelSpec model_of_initial_checkpoint(const std::string& path, std::vector<Problem>& problems) {
  try {
    return spec_of_checkpoint(checkpoint_at(path)).model;
  } catch (const ConfigError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  return {};
}

std::string chosen_initial_weights(const TrainSpec& train) {
  if (train.init.empty() || !train.resume.empty()) return "";
  return weights::is_hf_directory(train.init) ? train.init : checkpoint_at(train.init);
}

std::vector<Problem> initial_weights_problems(const RunSpec& spec) {
  const std::string& path = spec.train.init;
  if (path.empty()) return {};
  if (weights::is_hf_directory(path)) {
    const weights::HfDirectory source(path);
    std::vector<Problem> problems = differences(spec, source.model(), path);
    for (Problem& problem : source.problems_of_tied_head()) problems.push_back(std::move(problem));
    return problems;
  }
  const std::string directory = checkpoint_at(path);
  ckpt::verify_checkpoint(directory);
  const ModelSpec model = spec_of_checkpoint(directory).model;
  refuse_other_shapes(model, directory);
  return differences(spec, model, directory);
}

std::string told_of_initial_weights(const std::string& path) {
  if (weights::is_hf_directory(path))
    return cat("the weights of ", path, ", a Hugging Face directory; all else begins anew");
  return cat("the weights of ", checkpoint_at(path), "; its steps, optimizer and data are left");
}

void take_initial_weights(const RunSpec& spec, param::ParamStore& store) {
  const c10::AutoGradMode no_grad(false);
  const std::string& path = spec.train.init;
  const std::vector<ckpt::PlacedTensor> held = weight_tensors(store);
  if (weights::is_hf_directory(path)) {
    const weights::HfDirectory source(path);
    for (const ckpt::PlacedTensor& each : held) {
      const bool is_double = each.local.scalar_type() == at::kDouble;
      read_into(each, is_double ? at::kDouble : at::kFloat, [&](const ckpt::PlacedTensor& to) { source.read(to); });
    }
  } else {
    ckpt::CheckpointReader reader(checkpoint_at(path));
    reader.reads_of(held).verify();
    for (const ckpt::PlacedTensor& each : held) {
      read_into(each, ckpt::scalar_type(reader.manifest().tensors.at(each.name).type),
                [&](const ckpt::PlacedTensor& to) { reader.reads_of({to}).fill(); });
    }
  }
  store.round_masters();
}

}  // namespace braid::train
