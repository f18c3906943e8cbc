// The tensors of a training checkpoint: master weights, optimizer states, and the state of replication.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/manifest.h"
#include "braid/optim/optimizer.h"
#include "braid/param/disk_tensors.h"
#include "braid/param/param_store.h"
#include "braid/sync/replica_life.h"

namespace braid::train {

// The end of the name of a state's scales, if it is stored in codes: "adamw.first_moment.absmax/<parameter>".
inline constexpr const char* kScales = ".absmax";

// Returns this rank's parts of the tensors, on the host or on a device. `states` are the optimizer's. If replicas have
// their own masters and states, those of the first replica have the plain names, and each other replica adds its own
// under ReplicaLife::own_prefix().
std::vector<ckpt::PlacedTensor> saved_tensors(const param::ParamStore& store,
                                              const std::vector<optim::OptimizerState>& states,
                                              sync::ReplicaLife& replicas);

// Returns the masters that this rank owns, and its parts of the frozen parameters, which have none.
std::vector<ckpt::PlacedTensor> weight_tensors(const param::ParamStore& store);

// Returns the `tensors` that this rank saves. If it also has a tensor under `own_prefix`, only the first replica saves
// the one with the plain name: a checkpoint takes equal boxes from any rank, and here their values differ.
std::vector<ckpt::PlacedTensor> tensors_to_save(std::vector<ckpt::PlacedTensor> tensors, const std::string& own_prefix);

// Returns `tensors` on the host. Tensors on a device are copied.
std::vector<ckpt::PlacedTensor> on_host(std::vector<ckpt::PlacedTensor> tensors);

// Returns memory to read `tensors` into: on the host, and conversion_memory() in the type of the checkpoint where that
// differs. A parameter is saved as float32 while it is trained in 16 bits, and in 16 bits while it is frozen. Optimizer
// states are saved in the type of optimizer.state_dtype.
std::vector<ckpt::PlacedTensor> in_saved_types(std::vector<ckpt::PlacedTensor> tensors, const ckpt::Manifest& manifest,
                                               const std::optional<param::DiskSpace>& space);
// Copies what was read into `tensors`, where it was read into other memory. Rounds to nearest even.
void take_read(const std::vector<ckpt::PlacedTensor>& read, const std::vector<ckpt::PlacedTensor>& tensors);

// A checkpoint, and where the memory for conversions is (conversion_memory.h).
struct CheckpointSource {
  std::string directory;
  std::optional<param::DiskSpace> conversions;
};

// Reads `tensors` from the checkpoint. If the checkpoint lacks tensors of replication, they keep their
// values, so a run may resume with another replication or other replicas. If its replicas were apart, it must have all
// of them. REQUIRES: `optimizer` has its states. Throws as load_in_one_pass() does. Collective.
void load_tensors(const CheckpointSource& from, std::vector<ckpt::PlacedTensor> tensors, optim::Optimizer& optimizer,
                  Communicator& world);

// The counter in a checkpoint that was written while replicas had their own weights: the number of replicas.
inline constexpr const char* kReplicasApart = "replicas_apart";
// The counter of batches before the data cursor that rollbacks have skipped (Trainer::go_on_at()).
inline constexpr const char* kBatchesPassedOver = "batches_passed_over";

}  // namespace braid::train
