// Compares data and model parallelism for one model: what each replicates, splits and sends, with the bytes of this
// model.
#pragma once

#include <string>
#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/predict_run.h"

namespace braid::plan {

// One kind of parallelism, with all ranks along a single axis.
struct ParallelismRow {
  std::string name;                // "data", "data, ZeRO 3", "tensor", "pipe", "expert"
  std::string copied;              // in words: the part of the model and batch that every rank has
  std::string split;               // the part that is split over the ranks
  std::string when;                // the data that is sent, and when
  std::string growth;              // how the bytes grow with the number of ranks
  double sent_bytes = 0;           // bytes that a rank sends in a step
  double sent_bytes_on_twice = 0;  // the same with twice as many ranks
  bool possible = false;           // false: the model cannot be split this way, and `prediction` is empty
  Prediction prediction;
};

// Returns the table for `ranks` ranks. REQUIRES: `ranks` is at least 2. Bytes sent are those of ring algorithms.
// Symbols: e bytes of an element, P parameters, B sequences of s tokens in a step, m microbatches of a replica, h
// width, l blocks, n ranks. In a model with experts, each token uses k experts, and Q parameters are outside experts.
//
//   data          2 (n-1)/n 4 P: gradients in float32, once a step
//   data, ZeRO 3  m (n-1)/n P (2 e + 4): weights twice and gradients once for each microbatch
//   tensor        4 l B s h e 2 (n-1)/n: in each block, two all-reduces of outputs and two of the inputs' gradients
//   pipe          2 B s h e, sent by a rank in the middle: outputs forward, gradients backward
//   expert        (n-1)/n (4 l k B s h e / n + 8 Q): tokens to experts and back, in forward and backward; the
//                 all-reduce of all other parameters' gradients; no row if the model has no experts
std::vector<ParallelismRow> parallelism_table(const RunSpec& run, const Cluster& cluster, int ranks);

}  // namespace braid::plan
