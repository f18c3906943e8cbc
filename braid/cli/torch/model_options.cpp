// Adds and reads the options of commands that compute with a checkpoint's weights.
#include "braid/cli/torch/model_options.h"

#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/torch/named_checkpoint.h"
#include "braid/spec/assign.h"
#include "braid/spec/suggested_key.h"

namespace braid::cli {
namespace {

constexpr int kMaxThreads = 256, kMaxRanks = 1024;  // kMaxRanks: along an axis
constexpr size_t kMostOfFault = 20'000;             // bytes shown

// Stores the override in `options`. Returns its problem if it is wrong.
std::optional<Problem> mesh_word_problem(const std::string& key, std::string value, ModelOptions& options) {
  if (key != "mesh.pipe" && key != "mesh.tensor") {
    const std::string meant = spec::suggested_key(key);
    const bool is_near = meant == "mesh.pipe" || meant == "mesh.tensor";
    return Problem{key, value, "is not a key of this command, which has mesh.pipe and mesh.tensor",
                   is_near ? meant : ""};
  }
  std::string fault = whole_number(1, kMaxRanks)(value);
  if (!fault.empty()) return Problem{key, value, std::move(fault), ""};
  (key == "mesh.pipe" ? options.pipe : options.tensor) = std::stoi(value);
  return std::nullopt;
}

}  // namespace

std::optional<DType> ModelOptions::chosen_dtype() const { return value_of<DType>(dtype); }

void add_checkpoint(CLI::App& app, ModelOptions& options) {
  app.add_option("CHECKPOINT", options.checkpoint,
                 "a folder that braid train wrote, such as runs/quickstart/step-420; of a run's, the newest in it")
      ->required();
}

void take_mesh_words(std::vector<std::string>& words, ModelOptions& options) {
  std::vector<std::string> others;
  std::vector<Problem> found;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string key = spec::trimmed(word.substr(0, equals));
    if (equals == word.npos || spec::suggested_key(key).empty() || path_kind(word) != PathKind::Nothing) {
      others.push_back(word);
    } else if (auto problem = mesh_word_problem(key, spec::trimmed(word.substr(equals + 1)), options)) {
      found.push_back(std::move(*problem));
    }
  }
  if (!found.empty()) throw ConfigError(std::move(found));
  words = std::move(others);
}

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option("--threads", options.threads, "of each rank; 0: as many as suit the model")
      ->check(whole_number(0, kMaxThreads))
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "float32 or bfloat16, to compute with; the run's own where none is given")
      ->check(one_of({"float32", "bfloat16"}));
  app.add_option("--tokenizer", options.tokenizer,
                 "bytes, a tokenizer.json, or a folder with it, in place of the checkpoint's own");
}

std::string checkpoint_directory(const ModelOptions& options) {
  return named_checkpoint({"CHECKPOINT", options.checkpoint, options.checkpoint}, [](const std::string& fault) {
    std::cerr << "braid: passed over " << printable(fault, kMostOfFault) << "\n";
  });
}

}  // namespace braid::cli
