// Data and model parallelism beside each other for one model: what each copies, splits and sends, in the model's own
// numbers.
#pragma once

#include <string>
#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/predict_run.h"

namespace braid::plan {

// One way of using all `ranks` by a single axis.
struct ParallelismRow {
  std::string name;                // "data", "data, ZeRO 3", "tensor", "pipe", "expert"
  std::string copied;              // what every rank has
  std::string split;               // what each has a part of
  std::string when;                // what is sent when
  std::string growth;              // of the bytes with the ranks
  double sent_bytes = 0;           // by a rank in a step
  double sent_bytes_on_twice = 0;  // as many ranks
  bool possible = false;           // the model can be split so; else what follows says nothing
  Prediction prediction;
};

// Makes the table for `ranks` ranks, at least two. Bytes sent are those of ring algorithms. With e bytes of an element,
// P parameters, B sequences of s tokens in a step, m microbatches of a replica, h width, l blocks, n ranks; of a model
// with experts, k that a token goes to and Q parameters beside them:
//
//   data          2 (n-1)/n 4 P: gradients in float32, once a step
//   data, ZeRO 3  m (n-1)/n P (2 e + 4): for each microbatch weights twice and gradients once
//   tensor        4 l B s h e 2 (n-1)/n: two sums of a block's outputs, two of its inputs' gradients
//   pipe          2 B s h e, by a rank in the middle: outputs there, gradients back
//   expert        (n-1)/n (4 l k B s h e / n + 8 Q): tokens to experts and back, and their gradients; gradients of the
//                 rest; no row where the model has no experts
std::vector<ParallelismRow> parallelism_table(const RunSpec& run, const Cluster& cluster, int ranks);

}  // namespace braid::plan
