// Checks of a resumed run against the run that wrote its checkpoint. Reads configurations, not tensors.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/data/corpus.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// The configuration a checkpoint was written with, whatever mesh it had, without train.init. Throws ConfigError when it
// cannot be read.
RunSpec saved_spec(const ckpt::CheckpointInfo& info, const std::string& directory);

// Throws IoError when the weights that the checkpoint lists are not those of `model`, which its configuration
// describes: a manifest may say anything, so this is looked at before something of the model's size is made.
void refuse_other_shapes(const ModelSpec& model, const std::string& directory);

// A run that goes on: what it is told, and what its data are.
struct Resumed {
  const RunSpec& spec;
  const data::CorpusOrigin& origin;
};

// Every key that must be as it was and is not: the model, and what decides which samples come in which order, the data
// and the tokenizer by their content; and the numbers of the training, such as the optimizer's rates, that
// train.allow_change does not name, with a line that would allow them. The mesh, the schedule and the place of the data
// may change, where compression owes nothing to ranks that would be gone; also train.steps must leave something to do.
// A checkpoint without a configuration is judged by its data and its data cursor alone. What one of the two does not
// know of its data or tokenizer is not compared, but for the tokenizer's name or files.
std::vector<Problem> resume_problems(const Resumed& run, const ckpt::CheckpointInfo& info,
                                     const std::string& directory);

// Returns true if two values of DataSpec::tokenizer are the same files, wherever they lie. A missing one equals its own
// name only.
bool same_tokenizer(const std::string& a, const std::string& b);

// Takes what compression carries over (names that begin with kReducerState) out of the tensors to be read where the
// checkpoint's does not fit: another way of compressing, or other ranks. Returns a sentence about it, else "".
std::string leave_out_reducer_state(std::vector<ckpt::PlacedTensor>& tensors, const RunSpec& spec,
                                    const ckpt::CheckpointInfo& info, const std::string& directory);

}  // namespace braid::train
