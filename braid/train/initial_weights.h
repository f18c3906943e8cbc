// Weights that a run begins with (train.init): those of a Hugging Face directory, or of a checkpoint that any mesh
// wrote. Steps, the optimizer's states and the data are the run's own.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/param/param_store.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// The tokenizer of the weights that a run begins with (train.init). A run on text of another one would train on ids
// that mean other words. Tokenizers are compared by the content of their files.

// Returns the tokenizer of `init`, a Hugging Face directory, checkpoint or run, as data.tokenizer names it: "bytes" or
// a folder. Empty if it has none, or if there are no weights. Throws IoError.
std::string tokenizer_of_weights(const std::string& init);

// Judges spec.data against spec.train.init, before any text is read. Prepared data are judged by the digest in their
// manifest. Weights without tokenizer files take any tokenizer but "bytes", which needs a vocabulary of its size.
// Throws ConfigError for data.paths that are not of one kind, IoError.
std::vector<Problem> initial_tokenizer_problems(const RunSpec& spec);

// The model of the checkpoint `path`, or of the newest whole one in the folder of a run. Adds a problem of train.init
// when there is none, or when it cannot be read. As ParseOptions wants it.
ModelSpec model_of_initial_checkpoint(const std::string& path, std::vector<Problem>& problems);

// Resolves train.init once for all ranks: a Hugging Face directory, a checkpoint, or the newest whole one in the folder
// of a run, which may be about to write another. Empty if train.resume is given: a resumed run has its weights. Throws
// ConfigError if there is none.
std::string chosen_initial_weights(const TrainSpec& train);

// Without spec.train.init none. Every key of the model that is not as it has it: those that say which function of which
// weights it is. A model with rotary positions may have another context. Throws ConfigError and IoError when the
// weights cannot be had; every byte of a checkpoint is verified.
std::vector<Problem> initial_weights_problems(const RunSpec& spec);

// Returns the source of the weights as the end of a sentence.
std::string told_of_initial_weights(const std::string& path);

// Writes what this rank owns of the masters, rounded to their type, and the weights that are computed with where this
// rank owns them. Not collective. Throws IoError and ConfigError.
void take_initial_weights(const RunSpec& spec, param::ParamStore& store);

}  // namespace braid::train
