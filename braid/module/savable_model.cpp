// The order of the steps of saving and loading. Others define the contents of checkpoints and weight files
// (module_checkpoint.h, weights_file.h).
#include "braid/module/savable_model.h"

#include <c10/core/GradMode.h>

#include <optional>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/exchange.h"
#include "braid/module/module_checkpoint.h"
#include "braid/module/torch_state.h"
#include "braid/module/weights_file.h"

namespace braid::modules {
namespace {

void refuse_other_ways(const SyncSpec& sync) {
  const bool sums = sync.replication == ReplicationKind::AllReduce && sync.compression < CompressionKind::TopK;
  if (sums) return;
  throw ConfigError({{"sync", cat(sync.replication),
                      "must be sums without residuals, or ZeRO, to be saved: other ways keep state of their own", ""}});
}

}  // namespace

void SavableModel::save(const std::string& directory, torch::optim::Optimizer& optimizer) {
  const c10::AutoGradMode no_grad(false);
  const ModelPart part = this->part();
  refuse_other_ways(part.sync);
  std::vector<ckpt::PlacedTensor> tensors;
  ckpt::CheckpointInfo info{.step = part.num_steps};
  const auto take = [&] {
    tensors = ModuleCheckpoint(part, optimizer).tensors();
    info.optimizer = kind_of(optimizer);
  };
  ckpt::all_or_none(take, part.world);
  ckpt::save_checkpoint(directory, {tensors, info}, part.world);
}

void SavableModel::load(const std::string& directory, torch::optim::Optimizer& optimizer) {
  const c10::AutoGradMode no_grad(false);
  const ModelPart part = this->part();
  refuse_other_ways(part.sync);
  std::optional<ModuleCheckpoint> checkpoint;
  ckpt::all_or_none([&] { checkpoint.emplace(part, optimizer); }, part.world);
  resume_after(checkpoint->load(directory));
  part.world.barrier().wait_host();
}

void SavableModel::export_weights(const std::string& path) {
  const ModelPart part = this->part();
  with_whole_parameters([&] { write_weights(path, part); });
}

void SavableModel::import_weights(const std::string& path) {
  const ModelPart part = this->part();
  with_whole_parameters([&] { read_weights(path, part); });
}

}  // namespace braid::modules
