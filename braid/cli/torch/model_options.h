// Options of commands that compute with a checkpoint's weights: the checkpoint, and how to compute.
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
  int threads = 0;           // of each rank; 0: as many as suit the model
  std::string dtype;         // empty: the run's own
  std::string tokenizer;     // empty: the checkpoint's own

  std::optional<DType> chosen_dtype() const;
};

// CHECKPOINT, the first word.
void add_checkpoint(CLI::App& app, ModelOptions& options);
// Takes mesh.pipe=N and mesh.tensor=N out of `words`. Throws ConfigError for overrides of other keys and for numbers
// that are not positive. Words that are no override, or that name an existing path, stay.
void take_mesh_words(std::vector<std::string>& words, ModelOptions& options);
inline constexpr const char* kMeshWords = "mesh.pipe=N, mesh.tensor=N: ranks that share the model";
// --threads, --dtype, --tokenizer.
void add_model_options(CLI::App& app, ModelOptions& options);

// As named_checkpoint(); damaged ones that are passed over are told on standard error.
std::string checkpoint_directory(const ModelOptions& options);

}  // namespace braid::cli
