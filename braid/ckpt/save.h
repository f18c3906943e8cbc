// The steps of a save. A run may take the third one on a background thread while it trains:
//
//   plan_save()    collective, once for all saves of the same tensors
//   begin_save()   collective: the folder is there, and has room
//   written()      local, on any thread: this rank's files
//   end_save()     collective: publishes, or all ranks throw the same
//
// checkpoint_writer.h has the protocol of files, shard_plan.h who writes what.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "braid/base/file_system.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/checkpoint_writer.h"
#include "braid/ckpt/exchange.h"
#include "braid/ckpt/shard_plan.h"
#include "braid/ckpt/shard_writer.h"

namespace braid::ckpt {

// A checkpoint whose values come from elsewhere, some rows of one tensor at a time. One process writes all files.
struct StreamedSave {
  std::string to;
  std::vector<ListedTensor> listing;  // whole tensors
  BoxRows rows;  // is called for the tensors in the order of the files, each in the order of its rows
  CheckpointInfo info;
  std::map<std::string, std::string> tokenizer_files;
  int ranks = 1;  // files are cut as if this many ranks had saved, each holding everything
};

// The listing of a whole tensor.
ListedTensor whole_tensor(const TensorInfo& info);

// Publishes the checkpoint as a save does. Throws IoError and what `rows` throws; nothing is published then.
void save_streamed(const StreamedSave& save, FileSystem& files);

// This rank's part of a save of tensors with given names, types and placements, and the bytes of all ranks together.
struct SavePlan {
  Shard shard;
  int64_t bytes = 0;
  at::Device device = at::kCPU;  // of messages between ranks
  std::string writer;            // "rank 1 on h1", for errors; empty where no other rank writes
};

// Collective: every rank announces what it holds. Throws InternalError as plan_world().
SavePlan plan_save(const std::vector<PlacedTensor>& tensors, Communicator& world);

// A save under way, on every rank.
struct OpenSave {
  std::string folder;                        // where files are written
  std::unique_ptr<CheckpointWriter> writer;  // rank 0's; the others' is null
};

// Collective. On every rank: returns when the folder is there, or throws the same IoError. `files` is used on rank 0
// and outlives the save. A save that is destroyed before its end is taken back: by then no rank writes any more.
OpenSave begin_save(const std::string& directory, const SavePlan& plan, Communicator& world, FileSystem& files);

// The outcome of a rank's part of a save, as text for other ranks.
struct ShardReport {
  ManifestParts parts;
  std::string fault_path, fault;  // of the IoError that ended it; empty when none did
};

// Local: write_shard() of the plan's shard into `folder`. An IoError is in the report; nothing else is caught.
ShardReport written(const std::string& folder, const SavePlan& plan, const BoxRows& rows, FileSystem& files);

// Collective, with every rank's own report. Rank 0 publishes; `info` and the tokenizer's files are rank 0's. On every
// rank: returns when the checkpoint is published, or throws the same IoError, that of the lowest rank that failed, with
// what was written removed.
void end_save(OpenSave save, ShardReport mine, const CheckpointContent& content, Communicator& world);

// The two parts of begin_save(), for whoever has a thread make the folder. On rank 0, on any thread: makes it. Returns
// an IoError as text that travels, empty where there was none.
std::string opened(const std::string& directory, const SavePlan& plan, FileSystem& files, OpenSave& save);
// With rank 0's text of opened(), and its `save`. Throws it as an IoError on all ranks, or all know the folder.
// Collective.
void agree_on_folder(const std::string& fault, OpenSave& save, at::Device device, Communicator& world);

// The three parts of end_save(), for whoever has a thread publish. Of a save whose reports are bad, what was written is
// removed, and all ranks throw the same IoError. Collective. Returns on rank 0 what all wrote, elsewhere nothing.
ManifestParts gather_reports(OpenSave& save, ShardReport mine, at::Device device, Communicator& world);
// On rank 0, on any thread: publishes what gather_reports() gave, with `info`; null: no tokenizer files. Returns an
// IoError as text that travels, empty where there was none; what was written is removed then.
std::string published(OpenSave save, Manifest manifest, const std::map<std::string, std::string>* tokenizer_files);
// With rank 0's text of published(). Throws it as an IoError on all ranks. Collective.
void agree_on_publishing(const std::string& fault, at::Device device, Communicator& world);

// As save_checkpoint, over a file system of the caller's, so that tests can make it fail at any call.
void save_checkpoint_to(const std::string& directory, const CheckpointContent& content, Communicator& world,
                        FileSystem& files);

}  // namespace braid::ckpt
