// The checkpoint that train.resume names, and what a configuration need not repeat of it.
#pragma once

#include <functional>
#include <string>

#include "braid/spec/parse.h"
#include "braid/spec/train_spec.h"

namespace braid::cli {

// The folder of the checkpoint that train.resume names; empty when it is empty. Calls `on_passed_over` with the fault
// of each newer checkpoint that is damaged. Throws ConfigError when there is no whole checkpoint.
std::string resumed_checkpoint(const TrainSpec& train,
                               const std::function<void(const std::string& fault)>& on_passed_over);

// Throws ConfigError when train.resume is "latest" and train.out does not exist, before train.out is created.
void refuse_latest_of_nothing(const TrainSpec& train);

// Sets the functions that give the model and the tokenizer of the weights: those of the checkpoint that train.resume
// names, else those that train.init names. A resumed run never opens train.init. Only manifests are read.
void set_defaults_of_weights(spec::ParseOptions& options);

}  // namespace braid::cli
