// Compares configurations key by key, through the list of all fields.
#include "braid/train/resume.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "braid/base/digest.h"
#include "braid/base/text.h"
#include "braid/ckpt/manifest.h"
#include "braid/layout/parameters.h"
#include "braid/nn/model.h"
#include "braid/spec/change_on_resume.h"
#include "braid/spec/parameter_groups.h"
#include "braid/spec/parse.h"
#include "braid/sync/bucketed_all_reduce.h"
#include "braid/tokenize/tokenizer_identity.h"
#include "braid/train/left_out_states.h"
#include "braid/train/resumed_state.h"
#include "braid/train/saved_tensors.h"

namespace braid::train {
namespace {

// Weights are saved as float32, even if they are computed with in a narrower type.
bool same_saved_type(const RunSpec& a, const RunSpec& b) {
  return (a.train.dtype == DType::Float64) == (b.train.dtype == DType::Float64);
}

std::string described(const ContentMark& mark) {
  return cat(mark.name, " (", counted(mark.documents, "document"), ", ", counted(mark.bytes, "byte"), ", ",
             text(mark.digest), ")");
}

// Describes the first difference; "" if there is none.
std::string difference(const std::vector<ContentMark>& is, const std::vector<ContentMark>& was) {
  const auto [now, then] = std::mismatch(is.begin(), is.end(), was.begin(), was.end());
  if (now == is.end() && then == was.end()) return "";
  if (now == is.end()) return cat("which continues with ", described(*then), "; nothing is in its place");
  if (then == was.end()) return cat("which ends before ", described(*now));
  return cat("which has ", described(*then), " in place of ", described(*now));
}

void add_problem_of_data(const Resumed& run, const ckpt::CheckpointInfo& info, std::vector<Problem>& found,
                         const std::string& directory) {
  if (info.data.empty() || run.origin.sources.empty()) return;
  const std::string what = difference(data::marks_like(info.data, run.origin), info.data);
  if (what.empty()) return;
  found.push_back({"data.paths", spec::value_text(*spec::find_field("data.paths"), run.spec),
                   cat("must hold the data of ", directory, ", ", what), ""});
}

void add_problem_of_tokenizer(const Resumed& run, const ckpt::CheckpointInfo& info, std::vector<Problem>& found,
                              const std::string& directory) {
  const std::string& name = run.spec.data.tokenizer;
  const bool known = info.tokenizer_hash != 0 && run.origin.tokenizer != 0;
  if (known ? info.tokenizer_hash == run.origin.tokenizer : same_tokenizer(name, info.tokenizer)) return;
  found.push_back({"data.tokenizer", spec::toml_text(name), cat("must be the tokenizer of ", directory),
                   name == info.tokenizer ? "" : spec::toml_text(info.tokenizer)});
}

// Refuses another optimizer, since it has other states. SGD with momentum also has other states than without.
void add_problem_of_optimizer(const RunSpec& spec, const RunSpec& saved, std::vector<Problem>& found,
                              const std::string& directory) {
  const OptimizerSpec &is = spec.optimizer, &was = saved.optimizer;
  const auto kind = [](const RunSpec& of) { return spec::value_text(*spec::find_field("optimizer.kind"), of); };
  if (is.kind != was.kind) {
    found.push_back({"optimizer.kind", kind(spec), cat("must be the optimizer of ", directory), kind(saved)});
  } else if (is.kind == OptimizerKind::Sgd && (is.momentum > 0) != (was.momentum > 0)) {
    found.push_back({"optimizer.momentum", spec::toml_text(is.momentum),
                     cat("must be ", was.momentum > 0 ? "more than 0" : "0", " as in ", directory),
                     spec::toml_text(was.momentum)});
  }
}

// A saved configuration without the keys that no longer exist. A configuration is saved with a line for each key. A
// resumed run may decide anew about settings whose keys were removed.
struct WithoutFormerKeys {
  std::string config_toml;
  std::map<std::string_view, std::string> values;  // values of its removed keys, as TOML
};

WithoutFormerKeys without_former_keys(const std::string& config_toml) {
  std::istringstream lines(config_toml);
  WithoutFormerKeys kept;
  for (std::string line; std::getline(lines, line);) {
    const auto beginning = [](const spec::FormerKey& known) {
      return cat(known.key.substr(known.key.find('.') + 1), " = ");
    };
    const auto former = std::find_if(std::begin(spec::kFormerKeys), std::end(spec::kFormerKeys),
                                     [&](const spec::FormerKey& known) { return line.starts_with(beginning(known)); });
    const bool found = former != std::end(spec::kFormerKeys);
    if (found) kept.values[former->key] = line.substr(beginning(*former).size());
    kept.config_toml += found ? "\n" : line + "\n";
  }
  return kept;
}

// Takes the optimizer of parameter servers from the key that they once had. The key had no effect without parameter
// servers. Their SGD had no momentum, and of their optimizers only AdamW had weight decay.
void take_former_optimizer(const std::string& kind, RunSpec& spec) {
  if (spec.sync.replication != ReplicationKind::ParameterServer) return;
  for (const OptimizerKind former : {OptimizerKind::Sgd, OptimizerKind::Adagrad}) {
    if (kind != spec::toml_text(std::string(word(former)))) continue;
    spec.optimizer.kind = former;
    spec.optimizer.momentum = 0;
    spec.optimizer.weight_decay = 0;
  }
}

}  // namespace

bool has_tensor_parts(const ckpt::CheckpointInfo& info) {
  return info.config_toml.find("\ntensor_parts = ") != std::string::npos;
}

RunSpec saved_spec(const ckpt::CheckpointInfo& info, const std::string& directory) {
  const WithoutFormerKeys saved = without_former_keys(info.config_toml);
  // The files that the run began with may be gone, and a saved configuration describes the whole model. Therefore no
  // file that a configuration names for the weights or the model is opened.
  // A configuration from before train.tensor_parts may have a mesh.tensor that reproducible reduction now refuses.
  std::vector<std::string> overrides{"train.init=", "model.config="};
  if (!has_tensor_parts(info)) overrides.push_back("train.reduction=fast");
  RunSpec spec =
      spec::parse_run(saved.config_toml, cat("config in ", directory, "/manifest.json"), overrides, spec::any_hosts());
  const auto former = saved.values.find("sync.server_optimizer");
  if (former != saved.values.end()) take_former_optimizer(former->second, spec);
  return spec;
}

void refuse_other_shapes(const ModelSpec& model, const std::string& directory) {
  const std::string found = ckpt::found_directory(directory);
  const auto listed = ckpt::read_manifest(found).tensors;
  const auto refuse = [&](const std::string& why) {
    throw IoError(found + "/manifest.json", -1, "describes another model than it lists the weights of: " + why);
  };
  if (static_cast<size_t>(model.layers) > listed.size())
    refuse(cat("its configuration has ", counted(model.layers, "layer"), ", and it lists ",
               counted(listed.size(), "tensor")));
  for (const layout::BlockSpec& block : layout::model_params(model, 0, 1)) {
    for (const layout::ParamSpec& param : block.params) {
      const auto tensor = listed.find(param.name);
      if (tensor == listed.end()) refuse(cat("it lists no ", param.name));
      if (tensor->second.shape != param.placement.global_shape) refuse(cat(param.name, " has another shape"));
    }
  }
}

// Returns true if `spec` freezes a parameter that `saved` trains.
bool freezes_more(const RunSpec& spec, const RunSpec& saved) {
  for (const layout::BlockSpec& block : layout::model_params(spec.model, 0, 1)) {
    for (const layout::ParamSpec& param : block.params) {
      if (spec::is_frozen(spec.optimizer, param.name) && !spec::is_frozen(saved.optimizer, param.name)) return true;
    }
  }
  return false;
}

// Replicas that were saved with weights of their own must resume in the same number and with the same replication. They
// must average all of these weights, so none may be frozen.
void add_problems_of_replicas(const RunSpec& spec, const ckpt::CheckpointInfo& info, std::vector<Problem>& found,
                              const std::string& directory) {
  const auto apart = info.counters.find(kReplicasApart);
  if (apart == info.counters.end()) return;
  const auto refuse = [&](const char* key, const std::string& was) {
    found.push_back({key, spec::value_text(*spec::find_field(key), spec),
                     cat("must be as in ", directory, ", whose replicas are between two synchronisations"), was});
  };
  const ReplicationKind way = spec.sync.replication;
  const RunSpec saved = info.config_toml.empty() ? spec : saved_spec(info, directory);
  const ReplicationKind was = saved.sync.replication;
  const bool apart_too = way == ReplicationKind::LocalSgd || way == ReplicationKind::DiLoCo;
  if (way != was || !apart_too) refuse("sync.replication", spec::toml_text(std::string(word(was))));
  if (spec.mesh.data != apart->second) refuse("mesh.data", cat(apart->second));
  if (freezes_more(spec, saved) && may_change(spec, "optimizer.groups")) {
    found.push_back(
        {"optimizer.groups", spec::toml_text(spec.optimizer.groups),
         cat("must freeze no parameter that ", directory, " trains, whose replicas are between two synchronisations"),
         spec::toml_text(saved.optimizer.groups)});
  }
}

bool same_tokenizer(const std::string& a, const std::string& b) {
  if (a == b) return true;
  try {
    return tokenize::tokenizer_identity(a) == tokenize::tokenizer_identity(b);
  } catch (const IoError&) {
    return false;
  }
}

namespace {

bool carries_over(const SyncSpec& sync) {
  return sync.compression >= CompressionKind::TopK;  // the kinds before TopK round, and carry nothing over
}

struct SavedRun {
  int64_t step;
  const RunSpec& spec;
};

void add_problems_of_residuals(const RunSpec& spec, const SavedRun& saved, std::vector<Problem>& found,
                               const std::string& directory) {
  const SyncSpec& was = saved.spec.sync;
  const bool same_way = was.compression == spec.sync.compression;  // else the change of that key itself is checked
  if (!carries_over(was) || !same_way || may_change(spec, "sync.compression")) return;
  if (saved.step <= was.compression_start) return;
  for (const char* key : kRanksOfResiduals) {
    const spec::Field& field = *spec::find_field(key);
    const std::string before = spec::value_text(field, saved.spec), now = spec::value_text(field, spec);
    if (before == now) continue;
    found.push_back({key, now,
                     cat("must be as in ", directory,
                         ", where these ranks have residuals of sync.compression; they begin at zero with "
                         "train.allow_change = ",
                         allowing(spec, {"sync.compression"})),
                     before});
  }
}

// Adds a problem for each changed key, and one that says how to allow all of them.
void add_problems_of_changes(const RunSpec& spec, const RunSpec& saved, std::vector<Problem>& found,
                             const std::string& directory) {
  spec::Strings keys;
  for (const auto& [key, is, was] : training_changes(spec, saved)) {
    const auto is_of_key = [&, &key = key](const Problem& problem) { return problem.key == key; };
    if (may_change(spec, key) || std::any_of(found.begin(), found.end(), is_of_key)) continue;
    found.push_back({key, is, cat("must be as in ", directory, ", unless it is allowed to change"), was});
    keys.push_back(key);
  }
  if (keys.empty()) return;
  found.push_back({"train.allow_change", spec::toml_text(spec.train.allow_change),
                   cat("would have to name what is to change: train.allow_change = ", allowing(spec, keys)), ""});
}

int64_t batches_before(const ckpt::CheckpointInfo& info) {
  const auto passed_over = info.counters.find(kBatchesPassedOver);
  return info.step + (passed_over == info.counters.end() ? 0 : static_cast<int64_t>(passed_over->second));
}

}  // namespace

std::vector<Problem> resume_problems(const Resumed& run, const ckpt::CheckpointInfo& info,
                                     const std::string& directory) {
  const RunSpec& spec = run.spec;
  std::vector<Problem> found;
  const auto refuse = [&](const std::string& key, const std::string& was) {
    found.push_back({key, spec::value_text(*spec::find_field(key), spec), cat("must be as in ", directory), was});
  };
  if (!info.config_toml.empty()) {
    const RunSpec saved = saved_spec(info, directory);
    for (const spec::Field& field : spec::fields()) {
      const std::string was = spec::value_text(field, saved);
      const bool fixed = spec::change_on_resume(field) == spec::ChangeOnResume::Never && field.key != "optimizer.kind";
      if (fixed && spec::value_text(field, spec) != was) refuse(field.key, was);
    }
    if (!same_saved_type(spec, saved)) refuse("train.dtype", spec::value_text(*spec::find_field("train.dtype"), saved));
    add_problem_of_optimizer(spec, saved, found, directory);
    add_problems_of_residuals(spec, {info.step, saved}, found, directory);
    add_problems_of_changes(spec, saved, found, directory);
  } else if (const int64_t batches = batches_before(info); info.next_sample != batches * spec.train.batch) {
    refuse("train.batch", batches > 0 ? cat(info.next_sample / batches) : "");
  }
  add_problem_of_tokenizer(run, info, found, directory);
  add_problem_of_data(run, info, found, directory);
  add_problems_of_replicas(spec, info, found, directory);
  if (spec.train.steps < info.step) {
    found.push_back({"train.steps", cat(spec.train.steps),
                     cat("must be at least the ", counted(info.step, "step"), " that ", directory, " has done"),
                     cat(info.step)});
  }
  return found;
}

}  // namespace braid::train
