// The steps of a save: what ranks tell each other between them.
#include "braid/ckpt/save.h"

#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint_writer.h"
#include "braid/ckpt/exchange.h"
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

SavePlan plan_save(const std::vector<PlacedTensor>& tensors, Communicator& world) {
  const at::Device device = tensors.empty() ? at::Device(at::kCPU) : tensors[0].local.device();
  const WorldPlan plan = plan_world(all_gather_text(packed(listed(tensors)), device, world));
  const std::string writer = world.size() == 1 ? "" : cat("rank ", world.rank(), " on ", host_name());
  return {shard_of(plan, world.rank()), bytes_on_disk(plan), device, writer};
}

std::string opened(const std::string& directory, const SavePlan& plan, FileSystem& files, OpenSave& save) {
  return fault_of([&] {
    save.writer = std::make_unique<CheckpointWriter>(directory, plan.bytes, files);
    save.folder = save.writer->folder();
  });
}

void agree_on_folder(const std::string& fault, OpenSave& save, at::Device device, Communicator& world) {
  const std::string agreed = text_of_rank_0(fault, device, world);
  if (!agreed.empty()) throw_fault(agreed);
  save.folder = text_of_rank_0(save.folder, device, world);
}

OpenSave begin_save(const std::string& directory, const SavePlan& plan, Communicator& world, FileSystem& files) {
  OpenSave save;
  const std::string fault = world.rank() == 0 ? opened(directory, plan, files, save) : "";
  agree_on_folder(fault, save, plan.device, world);
  return save;
}

ShardReport written(const std::string& folder, const SavePlan& plan, const BoxRows& rows, FileSystem& files) {
  try {
    return {write_shard(folder, plan.shard, rows, files)};
  } catch (const IoError& error) {
    return {{}, error.path(), plan.writer.empty() ? error.why() : cat(error.why(), "; of ", plan.writer)};
  }
}

ManifestParts gather_reports(OpenSave& save, ShardReport mine, at::Device device, Communicator& world) {
  const std::string own = fault_of([&] {
    if (!mine.fault.empty()) throw IoError(mine.fault_path, -1, mine.fault);
  });
  for (const std::string& fault : all_gather_text(own, device, world)) {
    if (fault.empty()) continue;
    save.writer.reset();
    throw_fault(fault);
  }
  ManifestParts parts;
  for (const std::string& report : texts_at_rank_0(packed(mine.parts), device, world))
    parts.add(unpacked_parts(report));
  return parts;
}

std::string published(OpenSave save, Manifest manifest, const std::map<std::string, std::string>* tokenizer_files) {
  static const std::map<std::string, std::string> kNone;
  return fault_of([&] { save.writer->publish(std::move(manifest), tokenizer_files ? *tokenizer_files : kNone); });
}

void agree_on_publishing(const std::string& fault, at::Device device, Communicator& world) {
  const std::string agreed = text_of_rank_0(fault, device, world);
  if (!agreed.empty()) throw_fault(agreed);
}

void end_save(OpenSave save, ShardReport mine, const CheckpointContent& content, Communicator& world) {
  const at::Device device = content.tensors.empty() ? at::Device(at::kCPU) : content.tensors[0].local.device();
  Manifest manifest{gather_reports(save, std::move(mine), device, world), content.info};
  std::string fault;
  if (world.rank() == 0) fault = published(std::move(save), std::move(manifest), content.tokenizer_files);
  agree_on_publishing(fault, device, world);
}

void save_checkpoint_to(const std::string& directory, const CheckpointContent& content, Communicator& world,
                        FileSystem& files) {
  const SavePlan plan = plan_save(content.tensors, world);
  OpenSave save = begin_save(directory, plan, world, files);
  world.queue().drain();  // the values are read on the host
  ShardReport report = written(save.folder, plan, rows_of(content.tensors), files);
  end_save(std::move(save), std::move(report), content, world);
}

void save_checkpoint(const std::string& directory, const CheckpointContent& content, Communicator& world) {
  PosixFileSystem files;
  save_checkpoint_to(directory, content, world, files);
}

}  // namespace braid::ckpt
