// The steps of a save, with the messages that ranks exchange between them.
#include "braid/ckpt/save.h"

#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint_writer.h"
#include "braid/ckpt/exchange.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/shard_plan.h"
#include "braid/comm/agree.h"

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
  const WorldPlan plan = plan_world(comm::gather_texts(world, "listing of a checkpoint", packed(listed(tensors))));
  const std::string writer = world.size() == 1 ? "" : cat("rank ", world.rank(), " on ", host_name());
  return {shard_of(plan, world.rank()), bytes_on_disk(plan), writer};
}

std::string opened(const std::string& directory, const SavePlan& plan, FileSystem& files, OpenSave& save) {
  return fault_of([&] {
    save.writer = std::make_unique<CheckpointWriter>(directory, plan.bytes, files);
    save.folder = save.writer->folder();
  });
}

void agree_on_folder(const std::string& fault, OpenSave& save, Communicator& world) {
  const std::string agreed = comm::broadcast_text(world, "opening of a checkpoint", fault);
  if (!agreed.empty()) throw_fault(agreed);
  save.folder = comm::broadcast_text(world, "folder of a checkpoint", save.folder);
}

OpenSave begin_save(const std::string& directory, const SavePlan& plan, Communicator& world, FileSystem& files) {
  OpenSave save;
  const std::string fault = world.rank() == 0 ? opened(directory, plan, files, save) : "";
  agree_on_folder(fault, save, world);
  return save;
}

ShardReport written(const std::string& folder, const SavePlan& plan, const BoxRows& rows, FileSystem& files) {
  try {
    return {write_shard(folder, plan.shard, rows, files)};
  } catch (const IoError& error) {
    return {{}, error.path(), plan.writer.empty() ? error.why() : cat(error.why(), "; of ", plan.writer)};
  }
}

ManifestParts gather_reports(OpenSave& save, ShardReport mine, Communicator& world) {
  const std::string own = fault_of([&] {
    if (!mine.fault.empty()) throw IoError(mine.fault_path, -1, mine.fault);
  });
  for (const std::string& fault : comm::gather_texts(world, "faults of shards", own)) {
    if (fault.empty()) continue;
    save.writer.reset();
    throw_fault(fault);
  }
  ManifestParts parts;
  for (const std::string& report : comm::gather_texts_at_rank_0(world, "reports of shards", packed(mine.parts)))
    parts.add(unpacked_parts(report));
  return parts;
}

std::string published(OpenSave save, Manifest manifest, const std::map<std::string, std::string>* tokenizer_files) {
  static const std::map<std::string, std::string> kNone;
  return fault_of([&] { save.writer->publish(std::move(manifest), tokenizer_files ? *tokenizer_files : kNone); });
}

void agree_on_publishing(const std::string& fault, Communicator& world) {
  const std::string agreed = comm::broadcast_text(world, "publishing of a checkpoint", fault);
  if (!agreed.empty()) throw_fault(agreed);
}

void end_save(OpenSave save, ShardReport mine, const CheckpointContent& content, Communicator& world) {
  Manifest manifest{gather_reports(save, std::move(mine), world), content.info};
  std::string fault;
  if (world.rank() == 0) fault = published(std::move(save), std::move(manifest), content.tokenizer_files);
  agree_on_publishing(fault, world);
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
