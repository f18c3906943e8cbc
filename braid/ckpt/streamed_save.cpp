// The steps of a save, with a plan of one process.
#include "braid/ckpt/streamed_save.h"

#include "braid/ckpt/checkpoint_writer.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/shard_plan.h"

namespace braid::ckpt {

ListedTensor whole_tensor(const TensorInfo& info) {
  const mesh::Box whole{mesh::Index(info.shape.size(), 0), info.shape};
  return {info, whole.empty() ? std::vector<mesh::Box>() : std::vector<mesh::Box>{whole}};
}

void save_streamed(const StreamedSave& save, FileSystem& files) {
  const std::string listing = packed(save.listing);
  const WorldPlan plan = plan_world(std::vector<std::string>(static_cast<size_t>(save.ranks), listing));
  CheckpointWriter writer(save.to, bytes_on_disk(plan), files);
  Manifest manifest;
  manifest.info = save.info;
  for (int rank = 0; rank < save.ranks; ++rank) {
    manifest.add(write_shard(writer.folder(), shard_of(plan, rank), save.rows, files));
  }
  writer.publish(std::move(manifest), save.tokenizer_files);
}

}  // namespace braid::ckpt
