// The initial weights of a run (train.init): those of a Hugging Face directory, or of a checkpoint written on any mesh.
// Steps, the optimizer's states and the data are the run's own.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/param/param_store.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the tokenizer of the weights `init`, a Hugging Face directory, checkpoint or run, as a value of
// data.tokenizer: "bytes" or a folder. Empty if it has none, or if there are no weights. Throws IoError.
std::string tokenizer_of_weights(const std::string& init);

// Returns a problem if the tokenizer of spec.data is not that of the weights spec.train.init, since its ids would mean
// other tokens. Tokenizers are compared by the content of their files; for prepared data by the digest in their
// manifest. Weights without tokenizer files accept any tokenizer, but "bytes" only if their vocabulary has its size.
// Reads no text. Throws ConfigError if data.paths are not of one kind, and IoError.
std::vector<Problem> initial_tokenizer_problems(const RunSpec& spec);

// Returns the model of the checkpoint `path`; if `path` is the folder of a run, that of its newest whole checkpoint.
// Adds a problem of train.init if there is no checkpoint, or if it cannot be read. For
// ParseOptions::model_of_checkpoint.
ModelSpec model_of_initial_checkpoint(const std::string& path, std::vector<Problem>& problems);

// Resolves train.init once for all ranks: returns a Hugging Face directory, a checkpoint, or the newest whole
// checkpoint in the folder of a run, which may write another one later. Empty without train.init, and if train.resume
// is given, since a resumed run has its own weights. Throws ConfigError if there are no such weights.
std::string chosen_initial_weights(const TrainSpec& train);

// Returns a problem for each key of spec.model that differs from the model of spec.train.init, if the weights depend on
// it. A model with rotary positions may have another context. Empty without spec.train.init. Verifies every byte of a
// checkpoint. Throws ConfigError and IoError if the weights cannot be read.
std::vector<Problem> initial_weights_problems(const RunSpec& spec);

// Returns text that ends a sentence and names the source of the weights.
std::string told_of_initial_weights(const std::string& path);

// Reads the initial weights into the masters that this rank owns, rounded to their type, and into the weights of these
// masters that the rank computes with. Not collective. Throws IoError and ConfigError.
void take_initial_weights(const RunSpec& spec, param::ParamStore& store);

}  // namespace braid::train
