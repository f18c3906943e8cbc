// Options of commands that compute with a checkpoint's weights: the checkpoint and the way to compute.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "braid/spec/train_spec.h"

namespace braid::cli {

struct ModelOptions {
  std::string checkpoint;
  int pipe = 1, tensor = 1;  // ranks that share the model
  int threads = 0;           // threads of each rank; 0: as many as suit the model
  std::string dtype;         // empty: the run's own
  std::string tokenizer;     // empty: the checkpoint's own

  std::optional<DType> chosen_dtype() const;
};

// Adds the argument CHECKPOINT, the first word.
void add_checkpoint(CLI::App& app, ModelOptions& options);
// Removes mesh.pipe=N and mesh.tensor=N from `words` and stores them in `options`. Throws ConfigError for overrides of
// other keys and for numbers that are not positive. Words that are no override, or that name an existing path, stay in
// `words`.
void take_mesh_words(std::vector<std::string>& words, ModelOptions& options);
inline constexpr const char* kMeshWords = "mesh.pipe=N, mesh.tensor=N: ranks that share the model";
// Adds --threads, --dtype and --tokenizer.
void add_model_options(CLI::App& app, ModelOptions& options);

// Returns the folder of the checkpoint as named_checkpoint() does. Reports damaged checkpoints that are passed over on
// standard error.
std::string checkpoint_directory(const ModelOptions& options);

}  // namespace braid::cli
