// Options of a layer in a LayerList (layer_list.h).
#pragma once

#include <string>
#include <vector>

#include "braid/module/layer_call.h"

namespace braid {

// The tensors that a layer stores between forward and backward. Recomputed is activation checkpointing (Chen et al.,
// "Training Deep Nets with Sublinear Memory Cost", 2016): about one more forward of the layer for each backward.
//
// Loss, gradients, buffers and auxiliary losses have the bits of Kept. Two exceptions, where a gradient is summed in
// another order: a tensor with three or more uses, two of them in one recomputed layer; and a parameter with several
// uses under autocast, which keeps its cast for them. The second forward sees the training mode, the buffers, the
// microbatch and the random numbers of the first, and restores them afterwards. Random numbers are those of
// KeyedDropout and of the process-wide generator of the CPU, from which no other thread may draw meanwhile. A layer
// that communicates (SyncBatchNorm) communicates again in backward. Without gradients, Recomputed has no effect.
//
// The forward of a recomputed layer must compute the same for the same inputs. Only the state of the layer's own
// modules is restored: buffers, training mode, MicrobatchListeners. Other members, and modules that a function
// captures, run a second time as they are. Throws ConfigError naming the layer if
// * it writes its inputs or parameters in place;
// * it differentiates tensors that are neither its inputs nor its parameters, which would get no gradient;
// * a tensor of its forward that is neither an output nor an auxiliary loss is differentiated, which would give its
//   inputs no gradient;
// * one of its modules is a MicrobatchListener without capture_state();
// * backward is called with create_graph.
// Throws RunError naming the layer if backward finds that an input, or another tensor that the second forward would
// read, was written in place, or if the second forward returns other shapes or other numbers than the first. So does
// one that draws from the process-wide generator on ranks that are threads.
enum class Activations {
  Kept,        // all tensors that autograd saves in the layer's forward
  Recomputed,  // the layer's inputs; the rest is recomputed in backward
};

struct LayerOptions {
  std::vector<std::string> stash = {};
  std::vector<std::string> pop = {};
  Tensors parameters = {};  // parameters that a function trains; a module has its own
  Activations activations = Activations::Kept;
};

}  // namespace braid
