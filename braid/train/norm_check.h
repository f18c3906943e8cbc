// Checks the gradient norm that a step clips by. A fault in an all-reduce, in a shard or in the choice of the rank that
// counts a parameter changes the training without an error; here it becomes one.
#pragma once

#include <string>

#include "braid/comm/communicator.h"
#include "braid/train/rank_model.h"

namespace braid::train {

// Compares `norm`, the gradient norm of this rank's replica as the step forms it, with one that is formed tensor by
// tensor. For the latter each of `ranks` sums the squares of each box of a parameter that it owns, in float64, and
// every box is counted once over the ranks that hold it. The copies of a box are compared too.
//
// Both norms are sums of the same n squares in float64, in different orders, so they differ by at most (n + 3) 2^-53 of
// the norm. Copies on the CPU are equal bit for bit: they are results of the same all-reduce, or of the same
// computation on the same numbers. On other devices sums may have another order on each rank, and copies may differ by
// the rounding of their type.
//
// Returns a description of the difference, the same on all ranks; empty if there is none. Norms that are not finite
// agree with each other, and copies are not compared then. Reads the gradients once. REQUIRES: the gradients are final,
// and replicas among `ranks` have the same. Collective over `ranks`.
std::string norm_fault(RankModel& model, double norm, Communicator& ranks);

}  // namespace braid::train
