// Checks of a resumed run against the run that wrote its checkpoint. Reads configurations, not tensors.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/data/corpus.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns true if the checkpoint's configuration has train.tensor_parts, which older ones do not.
bool has_tensor_parts(const ckpt::CheckpointInfo& info);

// Returns the configuration of the run that wrote the checkpoint, without train.init and model.config. Its mesh may
// have more ranks than this machine allows. Without train.tensor_parts, its reduction is fast. Throws ConfigError if it
// cannot be read.
RunSpec saved_spec(const ckpt::CheckpointInfo& info, const std::string& directory);

// Throws IoError if the weights that the checkpoint lists are not those of `model`, the one in its configuration.
// Callers check this before they allocate anything of the model's size, since a manifest is untrusted input.
void refuse_other_shapes(const ModelSpec& model, const std::string& directory);

// A resumed run: its configuration and the origin of its data.
struct Resumed {
  const RunSpec& spec;
  const data::CorpusOrigin& origin;
};

// Returns a problem for each key that must not differ from the checkpoint's configuration but does:
//
//   * the model;
//   * keys that choose the samples and their order; the data and the tokenizer are compared by content;
//   * settings of the training, such as the optimizer's rates, unless train.allow_change lists them; one more problem
//     shows the line that would allow all of them;
//   * the mesh, the schedule and the partition, if compression carries residuals over for the old ranks;
//   * sync.replication, mesh.data and further frozen parameters, if replicas were saved between two synchronisations;
//   * train.steps, if it is less than the steps that are done.
//
// Otherwise the mesh, the schedule and the paths of the data may change. A checkpoint without a configuration is judged
// by its data, its tokenizer and its data cursor. Data are not compared if their content marks are missing on one side.
// A tokenizer without a hash on one side is compared by its name or files.
std::vector<Problem> resume_problems(const Resumed& run, const ckpt::CheckpointInfo& info,
                                     const std::string& directory);

// Returns true if two values of DataSpec::tokenizer name files of the same content. A tokenizer whose files are missing
// equals only its own name.
bool same_tokenizer(const std::string& a, const std::string& b);

}  // namespace braid::train
