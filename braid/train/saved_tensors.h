// What a checkpoint holds of a training: masters, moments, and what keeping replicas in step adds. It reads and writes
// no file.
#pragma once

#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/optim/adamw.h"
#include "braid/param/param_store.h"
#include "braid/sync/replication.h"

namespace braid {

// This rank's parts, wherever they are; writing into them restores the training (round_masters() aside).
std::vector<PlacedTensor> saved_tensors(const ParamStore& store, const AdamW& optimizer, Replication& replication);

// The same on the host: themselves where they are there already, else copies.
std::vector<PlacedTensor> on_host(std::vector<PlacedTensor> tensors);

}  // namespace braid
