// The conversion of a Hugging Face directory to a checkpoint. The checkpoint's configuration has the model's sizes, the
// directory as data.paths and data.tokenizer, and defaults, because no training has happened yet.
#include "braid/weights/from_hf.h"

#include <ATen/ops/empty.h>

#include <limits>
#include <memory>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/save.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/layout/parameters.h"
#include "braid/nn/model.h"
#include "braid/spec/describe.h"
#include "braid/spec/problems.h"
#include "braid/spec/run_spec.h"
#include "braid/tokenize/tokenizer.h"
#include "braid/tokenize/tokenizer_identity.h"
#include "braid/weights/hf_directory.h"

namespace braid::weights {
namespace {

RunSpec spec_of(const HfDirectory& source) {
  RunSpec spec;
  spec.model = source.model();
  spec.data.paths = {source.folder()};
  spec.data.tokenizer = source.folder();
  if (source.is_wide()) spec.train.dtype = DType::Float64;
  auto found = spec::problems(spec, {std::numeric_limits<int>::max()});
  if (!found.empty()) throw ConfigError(std::move(found));
  return spec;
}

at::ScalarType master_type(const HfDirectory& source) { return source.is_wide() ? at::kDouble : at::kFloat; }

std::vector<ckpt::ListedTensor> weights_of(const HfDirectory& source) {
  std::vector<ckpt::ListedTensor> listing;
  for (const HfTensor& each : source.tensors()) {
    if (each.first_row > 0) continue;
    listing.push_back(ckpt::whole_tensor({each.whole, ckpt::element_type(master_type(source)), each.whole_shape}));
  }
  return listing;
}

// Returns a reader of rows. It keeps one tensor in memory: the one whose rows were read last.
ckpt::BoxRows rows_from(const HfDirectory& source) {
  const auto held = std::make_shared<ckpt::PlacedTensor>();
  return [&source, held](const ckpt::PlannedBox& planned, int64_t begin, int64_t end) {
    const ckpt::TensorInfo& info = planned.tensor;
    if (held->name != info.name) {
      held->local.reset();
      *held = {info.name, mesh::replicated(info.shape), at::empty(info.shape, master_type(source))};
      source.read(*held);
    }
    return held->local.narrow(0, begin, end - begin);
  };
}

// The tokenizer's files, its hash if braid can read it, and a sentence that describes it.
struct FoundTokenizer {
  std::map<std::string, std::string> files;
  uint64_t hash = 0;
  std::string sentence;
};

FoundTokenizer tokenizer_in(const std::string& folder, int model_vocab) {
  FoundTokenizer found;
  if (!has_tokenizer(folder)) {
    found.sentence = cat("no tokenizer: ", folder, " has none");
    return found;
  }
  found.files = tokenize::tokenizer_copy(folder);
  for (const std::string& name : carried_files()) {
    const std::string path = cat(folder, "/", name);
    if (path_kind(path) == PathKind::File) found.files[name] = file_content(path, tokenize::kMaxTokenizerBytes);
  }
  try {
    const auto tokenizer = tokenize::make_tokenizer(folder);
    found.hash = tokenize::tokenizer_hash(tokenize::tokenizer_identity(folder), tokenizer->end_of_text());
    found.sentence = cat("the tokenizer of ", counted(tokenizer->vocab(), "token"));
    if (tokenizer->vocab() > model_vocab) {
      throw ConfigError(
          {{cat(folder, "/tokenizer.json"), cat(tokenizer->vocab()),
            cat("must have at most the ", counted(model_vocab, "token"), " of vocab_size in config.json"), ""}});
    }
  } catch (const ConfigError& error) {
    if (found.hash != 0) throw;
    found.sentence = cat("the tokenizer, which braid cannot read: ", error.what());
  }
  return found;
}

}  // namespace

bool has_tokenizer(const std::string& folder) {
  return path_kind(folder + "/tokenizer.json") != PathKind::Nothing ||
         path_kind(folder + "/vocab.json") != PathKind::Nothing;
}

const std::vector<std::string>& carried_files() {
  static const std::vector<std::string> kNames{
      "tokenizer.json",    "tokenizer_config.json",  "vocab.json",         "merges.txt", "special_tokens_map.json",
      "added_tokens.json", "generation_config.json", "chat_template.jinja"};
  return kNames;
}

// Refuses a place that is not empty. A save removes what an interrupted save left under its two other names, but here
// these files may be the user's, so they are refused too.
void require_empty_place(const std::string& option, const std::string& path) {
  std::vector<Problem> problems;
  const PathKind kind = path_kind(path);
  if (kind != PathKind::Nothing && (kind != PathKind::Folder || !names_in(path).empty()))
    problems.push_back({option, path, "must not exist, or be an empty folder: nothing is overwritten", ""});
  for (const std::string& other : {ckpt::temporary_name(path), ckpt::aside_name(path)}) {
    if (path_kind(other) != PathKind::Nothing)
      problems.push_back({option, path, cat("must be another name: ", other, " is there"), ""});
  }
  const std::string parent = parent_folder(path.substr(0, path.find_last_not_of('/') + 1));
  if (path_kind(parent) != PathKind::Folder)
    problems.push_back({option, path, cat("must lie in a folder: there is no ", parent), ""});
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

std::vector<std::string> checkpoint_from_hf(const FromHf& request, FileSystem& files) {
  require_empty_place("OUT", request.checkpoint);
  const HfDirectory source(request.directory);
  if (auto problems = source.problems_of_tied_head(); !problems.empty()) throw ConfigError(std::move(problems));
  const RunSpec spec = spec_of(source);
  const FoundTokenizer tokenizer = tokenizer_in(request.directory, spec.model.vocab);
  ckpt::CheckpointInfo info;
  info.config_toml = spec::to_toml(spec);
  info.tokenizer = spec.data.tokenizer;
  info.tokenizer_hash = tokenizer.hash;
  ckpt::save_streamed({.to = request.checkpoint,
                       .listing = weights_of(source),
                       .rows = rows_from(source),
                       .info = info,
                       .tokenizer_files = tokenizer.files},
                      files);
  size_t carried = 0;
  for (const HfTensor& each : hf_carried(spec.model)) carried += source.has(each.whole) ? 1 : 0;
  const std::string more =
      carried > 0 ? cat(", and ", counted(carried, "tensor"), " that braid copies and does not train (pooler, ...)")
                  : "";
  return {cat("a ", spec.model.family, " of ", counted(layout::count_params(spec.model), "parameter"), " in ",
              source.is_wide() ? "float64" : "float32", more),
          tokenizer.sentence};
}

}  // namespace braid::weights
