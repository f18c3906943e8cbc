// Finds values in a model that are not finite, for the message of a run that ends.
#pragma once

#include <string>

#include "braid/train/rank_model.h"

namespace braid::train {

// "weights of blocks.3.mlp.up.weight (layer blocks.3, rank 1) are not finite": the first such parameter in model order;
// where all are finite the last gradient, since from there backward has handed it on to the layers before. With every
// rank of the world that holds it. Empty where all is finite. Sums over replicas have carried what one of them made to
// all. Collective over groups().step_report.
std::string where_not_finite(RankModel& model);

}  // namespace braid::train
