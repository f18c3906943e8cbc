// A model's parameters and buffers in one safetensors file that plain torch reads, whichever ranks hold them.
#pragma once

#include <string>

#include "braid/module/model_part.h"

namespace braid::modules {

// Collective over part.world. Writes the tensors of all ranks, under torch's names, and replaces `path` atomically.
// Rank 0 writes. Other ranks send it one tensor after another, so it holds no more than one of their tensors. If
// several ranks have a tensor, the lowest rank's is written. REQUIRES: parameters are whole. Throws the same error on
// all ranks, as require_stored() or IoError; then `path` is as it was before.
void write_weights(const std::string& path, const ModelPart& part);
// Collective over part.world. Reads a file of write_weights() or safetensors.torch.save_file. Every rank loads its own
// tensors, as torch::load does; replicas then take the values over. Throws the same error on all ranks, before anything
// changes: IoError, or ConfigError with every tensor that is missing, not in the model, or of another shape or type.
void read_weights(const std::string& path, const ModelPart& part);

}  // namespace braid::modules
