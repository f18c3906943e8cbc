// A model's parameters and buffers as one safetensors file that plain torch reads, whichever ranks have them.
#pragma once

#include <string>

#include "braid/module/model_part.h"

namespace braid::modules {

// Writes all that ranks have, under torch's names, and puts it in the place of `path` at one stroke: rank 0 does, which
// is sent one tensor after another and holds no more of others'. Of what several ranks have the lowest's is taken.
// Parameters are whole. Collective over part.world. Throws as require_stored() and IoError, on all ranks the same, with
// what was at `path` before in its place.
void write_weights(const std::string& path, const ModelPart& part);
// Reads what write_weights(), or safetensors.torch.save_file, has written: every rank what it has, as torch::load does,
// which replicas follow. Collective over part.world. Throws, before anything changes and on all ranks the same,
// IoError, and ConfigError with every tensor that is missing, too many, or of another shape or type.
void read_weights(const std::string& path, const ModelPart& part);

}  // namespace braid::modules
