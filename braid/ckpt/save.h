// save_checkpoint over a file system of the caller's, so that tests can make it fail at any call.
// It deliberately does not know the protocol of files (checkpoint_writer.h) nor who sends what (gather.h).
#pragma once

#include "braid/base/file_system.h"
#include "braid/ckpt/checkpoint.h"

namespace braid {

// As save_checkpoint. `files` is used on rank 0 only.
void save_checkpoint_to(const std::string& directory, const CheckpointContent& content, Communicator& world,
                        FileSystem& files);

}  // namespace braid
