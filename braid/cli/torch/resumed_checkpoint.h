// The checkpoint that train.resume names, and the settings that a configuration need not repeat from it.
#pragma once

#include <functional>
#include <string>

#include "braid/spec/parse.h"
#include "braid/spec/train_spec.h"

namespace braid::cli {

// Returns the folder of the checkpoint that train.resume names; empty if train.resume is empty. Calls `on_passed_over`
// with the fault of each newer checkpoint that is damaged. Throws ConfigError if there is no whole checkpoint.
std::string resumed_checkpoint(const TrainSpec& train,
                               const std::function<void(const std::string& fault)>& on_passed_over);

// Throws ConfigError if train.resume is "latest" and train.out does not exist. REQUIRES: train.out has not been created
// yet.
void refuse_latest_of_nothing(const TrainSpec& train);

// Sets the functions that return the model and the tokenizer of the weights. These are from the checkpoint that
// train.resume names, else from the weights that train.init names. A resumed run never opens train.init. Only manifests
// are read.
void set_defaults_of_weights(spec::ParseOptions& options);

}  // namespace braid::cli
