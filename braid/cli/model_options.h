// Options of commands that compute with a checkpoint's weights: which checkpoint, and how.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "braid/spec/train_spec.h"

namespace braid {

struct ModelOptions {
  std::string checkpoint;
  int threads = 0;        // 0: as many as suit the model
  std::string dtype;      // empty: the run's own
  std::string tokenizer;  // empty: the checkpoint's own

  std::optional<DType> chosen_dtype() const;
};

// CHECKPOINT, the first word.
void add_checkpoint(CLI::App& app, ModelOptions& options);
// --threads, --dtype, --tokenizer.
void add_model_options(CLI::App& app, ModelOptions& options);

// As named_checkpoint(); damaged ones that are passed over are told on standard error.
std::string checkpoint_directory(const ModelOptions& options);

}  // namespace braid
