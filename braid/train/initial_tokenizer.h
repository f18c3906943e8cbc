// The tokenizer of the weights that a run begins with (train.init). A run on text of another one would train on ids
// that mean other words. Tokenizers are compared by the content of their files.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the tokenizer of `init`, a Hugging Face directory, checkpoint or run, as data.tokenizer names it: "bytes" or
// a folder. Empty if it has none, or if there are no weights. Throws IoError.
std::string tokenizer_of_weights(const std::string& init);

// Judges spec.data against spec.train.init, before any text is read. Prepared data are judged by the digest in their
// manifest. Weights without tokenizer files take any tokenizer but "bytes", which needs a vocabulary of its size.
// Throws ConfigError for data.paths that are not of one kind, IoError.
std::vector<Problem> initial_tokenizer_problems(const RunSpec& spec);

}  // namespace braid::train
