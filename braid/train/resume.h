// What a run that goes on from a checkpoint must share with the run that wrote it. Reads configurations, not tensors.
#pragma once

#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/spec/run_spec.h"

namespace braid {

// The configuration a checkpoint was written with, whatever mesh it had. Throws ConfigError when it cannot be read.
RunSpec saved_spec(const CheckpointInfo& info, const std::string& directory);

// Every key that must be as it was and is not: the model, and what decides which samples come in which order. The mesh,
// the schedule, the optimizer's rates and the place of the data may change; also train.steps must leave something to
// do. A checkpoint without a configuration is judged by its data cursor alone.
std::vector<Problem> resume_problems(const RunSpec& spec, const CheckpointInfo& info, const std::string& directory);

// Takes what compression carries over (names that begin with kReducerState) out of the tensors to be read where the
// checkpoint's does not fit: another way of compressing, or other ranks. Returns a sentence about it, else "".
std::string leave_out_reducer_state(std::vector<PlacedTensor>& tensors, const RunSpec& spec, const CheckpointInfo& info,
                                    const std::string& directory);

}  // namespace braid
