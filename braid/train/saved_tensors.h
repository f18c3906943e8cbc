// The tensors of a training checkpoint: master weights, optimizer states, and the state of replication.
#pragma once

#include <string>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/optim/optimizer.h"
#include "braid/param/param_store.h"
#include "braid/sync/replica_life.h"

namespace braid::train {

// This rank's parts, wherever they are. Where replicas have masters and states of their own, those of the first have
// the plain names, and the others add theirs under names of their own.
std::vector<ckpt::PlacedTensor> saved_tensors(const param::ParamStore& store, optim::Optimizer& optimizer,
                                              sync::ReplicaLife& replicas);

// The masters alone, of what this rank owns.
std::vector<ckpt::PlacedTensor> master_tensors(const param::ParamStore& store);

// Those of them that a rank saves: all, but where it has others of its own under `own_prefix`, the plain names are the
// first replica's to save (a checkpoint takes any rank's of equal boxes, which these are not).
std::vector<ckpt::PlacedTensor> tensors_to_save(std::vector<ckpt::PlacedTensor> tensors, const std::string& own_prefix);

// The same on the host: themselves where they are there already, else copies.
std::vector<ckpt::PlacedTensor> on_host(std::vector<ckpt::PlacedTensor> tensors);

// Reads them from `directory`; `optimizer` has named its states. What keeping replicas in step adds stays as it is
// where the checkpoint has none of it, so that a run may go on in another way or with other replicas; but not when its
// replicas were apart, for then all of it counts. Collective. Throws as load_in_one_pass().
void load_tensors(const std::string& directory, std::vector<ckpt::PlacedTensor> tensors, optim::Optimizer& optimizer,
                  Communicator& world);

// A counter of checkpoints that were written while replicas had weights of their own: the number of replicas.
inline constexpr const char* kReplicasApart = "replicas_apart";
// The batches that steps were not made with, before the data cursor: those that a run has gone on behind (Trainer).
inline constexpr const char* kBatchesPassedOver = "batches_passed_over";

}  // namespace braid::train
