// Two names and two digests.
#include "braid/train/initial_tokenizer.h"

#include "braid/base/counted.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/data/prepared_corpus.h"
#include "braid/spec/fields.h"
#include "braid/tokenize/tokenizer.h"
#include "braid/tokenize/tokenizer_identity.h"
#include "braid/weights/from_hf.h"
#include "braid/weights/hf_directory.h"

namespace braid::train {
namespace {

constexpr const char* kBytes = "bytes";

// The tokenizer of a run's data.
struct TokenizerInUse {
  std::string key;   // that chooses it
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
  return ckpt::read_checkpoint_info(checkpoint).tokenizer == kBytes ? kBytes : "";
}

std::vector<Problem> initial_tokenizer_problems(const RunSpec& spec) {
  const std::string& init = spec.train.init;
  const std::string& named = spec.data.tokenizer;
  // A tokenizer that is missing is refused where it is opened.
  if (init.empty() || (named != kBytes && path_kind(named) == PathKind::Nothing)) return {};
  const TokenizerInUse used = tokenizer_in_use(spec.data);
  const std::string of_weights = tokenizer_of_weights(init);
  if (of_weights.empty()) {
    const int vocab = spec.model.vocab;
    if (used.name != kBytes || vocab == 0 || vocab == tokenize::byte_tokenizer()->vocab()) return {};
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

}  // namespace braid::train
