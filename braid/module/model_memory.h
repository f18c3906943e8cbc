// Where a DataParallel or a ModulePipeline has the parameters and gradients of its model between their uses.
//
//   DataParallel model(layers, world, {.memory = {.parameters = Kept::OnDisk, .gradients = Kept::OnDisk,
//                                                 .folders = {"/scratch"}}});
//   torch::optim::AdamW optimizer(model.parameters(), 1e-3);
//   OptimizerOnDisk on_disk(optimizer, {.folders = {"/scratch"}});
//   for (...) {
//     model.backward(loss(model.forward(x), y));
//     model.step(on_disk);
//   }
//
// Parameters on disk (ZeRO-Infinity, Rajbhandari et al. 2021, section 5) are in memory while their layer runs, forward
// or backward, and the next layer's are read meanwhile. A layer's gradients are written when its backward is over.
// With sync.zero, a rank has its part of them on disk, as sync.zero = 3 or 2 divides them. The bits are those of
// sync.zero = 3 or 2 in memory; without sync.zero, or with one rank, those of sync.zero = 0. Only gradients of a
// parameter in two stages of a rank are summed in another order. As with several ranks, parameters that the loss does
// not depend on get gradients of zero.
//
// Frozen parameters stay in memory.
//
// Parameters move layer by layer when the DataParallel or ModulePipeline is made; until then they are in memory, as the
// modules made them. They are whole in memory in with_whole_parameters(), export_weights() and import_weights() too,
// but not in save() and load(). parameters() and their .grad are mapped files, whose pages are the system's page cache:
// read them, do not write them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/param/disk_tensors.h"

namespace braid {

using param::Kept;

struct ModelMemory {
  Kept parameters = Kept::InMemory;
  Kept gradients = Kept::InMemory;
  std::vector<std::string> folders = {};   // a file without a name in each; needed by what is on disk
  int64_t chunk_bytes = int64_t{4} << 20;  // of gradients that are added to those on disk, at a time

  bool has_disk() const { return parameters == Kept::OnDisk || gradients == Kept::OnDisk; }
};

}  // namespace braid
