// Options of a layer in a LayerList (layer_list.h).
#pragma once

#include <string>
#include <vector>

#include "braid/module/layer_call.h"

namespace braid {

// The memory that a layer's backward needs, from forward on. Recomputed is activation checkpointing (Chen et al.,
// "Training Deep Nets with Sublinear Memory Cost", 2016): about one more forward of the layer for each backward.
//
// Loss, gradients, buffers and auxiliary losses have the bits of Kept. Two exceptions, where a gradient is summed in
// another order: a tensor with three or more uses, two of them in one recomputed layer; and a parameter with several
// uses under autocast, which keeps its cast for them. The second forward sees the training mode, the buffers, the
// microbatch and the random numbers of the first, and leaves no trace in them. Random numbers are those of KeyedDropout
// and of the process-wide generator of the CPU. A layer that communicates (SyncBatchNorm) communicates again in
// backward. Without gradients, Recomputed has no effect.
//
// The forward of a recomputed layer must compute the same for the same inputs. Modules that a function captures are not
// found, so their buffers would change twice; add them as layers. Throws ConfigError naming the layer if
// * it writes its inputs or parameters in place;
// * it differentiates tensors that are neither its inputs nor its parameters, which would get no gradient;
// * one of its modules is a MicrobatchListener without capture_state();
// * it draws from the process-wide generator on ranks that are threads;
// * backward is called with create_graph.
// Throws RunError naming the layer if backward finds that an input, or another tensor that the second forward would
// read, was written in place, or if the second forward returns other shapes than the first.
enum class Activations {
  Kept,        // all tensors that autograd saves in the layer's forward
  Recomputed,  // the layer's inputs; backward runs the layer's forward again
};

struct LayerOptions {
  std::vector<std::string> stash = {};
  std::vector<std::string> pop = {};
  Tensors parameters = {};  // parameters that a function trains; a module has its own
  Activations activations = Activations::Kept;
};

}  // namespace braid
