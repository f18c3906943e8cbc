// The steps of a save. The third step may run on a background thread while training continues:
//
//   plan_save()    collective, once for all saves of the same tensors
//   begin_save()   collective: creates the folder, checks free space
//   written()      local, on any thread: writes this rank's files
//   end_save()     collective: publishes, or all ranks throw the same error
//
// checkpoint_writer.h describes the order of operations on files, shard_plan.h the assignment of boxes to ranks.
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

// A checkpoint whose values a callback supplies, some rows of one tensor at a time. One process writes all files.
struct StreamedSave {
  std::string to;
  std::vector<ListedTensor> listing;  // whole tensors
  BoxRows rows;                       // called for tensors in the order of the files, and for each tensor in row order
  CheckpointInfo info;
  std::map<std::string, std::string> tokenizer_files;
  int ranks = 1;  // files are cut as if this many ranks had saved, each holding everything
};

// Returns the listing of a whole tensor.
ListedTensor whole_tensor(const TensorInfo& info);

// Publishes the checkpoint as a save does. Throws IoError and the exceptions of `rows`; then nothing is published.
void save_streamed(const StreamedSave& save, FileSystem& files);

// This rank's part of a save of tensors with given names, types and placements.
struct SavePlan {
  Shard shard;
  int64_t bytes = 0;   // upper bound on the bytes of all ranks' files
  std::string writer;  // "rank 1 on h1", for errors; empty if there is one rank
};

// Collective. Each rank announces the boxes that it holds. Throws InternalError as plan_world() does.
SavePlan plan_save(const std::vector<PlacedTensor>& tensors, Communicator& world);

// A save that has begun. Each rank has one.
struct OpenSave {
  std::string folder;                        // folder in which files are written
  std::unique_ptr<CheckpointWriter> writer;  // null on all ranks but rank 0
};

// Collective. Returns on every rank once the folder exists, or throws the same IoError on every rank. `files` is used
// on rank 0 and outlives the save. If the result is destroyed before end_save(), the folder is removed. REQUIRES: no
// rank writes to the folder when that happens.
OpenSave begin_save(const std::string& directory, const SavePlan& plan, Communicator& world, FileSystem& files);

// The outcome of a rank's part of a save, for other ranks.
struct ShardReport {
  ManifestParts parts;
  std::string fault_path, fault;  // path and reason of the IoError that ended it; empty: none
};

// Local. Writes the plan's shard into `folder` by write_shard(). An IoError goes into the report; other exceptions
// are thrown.
ShardReport written(const std::string& folder, const SavePlan& plan, const BoxRows& rows, FileSystem& files);

// Collective. Each rank passes its own report, and rank 0 publishes. The metadata and the tokenizer's files are rank
// 0's. Returns on every rank once the checkpoint is published. Otherwise what was written is removed, and every rank
// throws the IoError of the lowest rank that failed.
void end_save(OpenSave save, ShardReport mine, const CheckpointContent& content, Communicator& world);

// The first of the two parts of begin_save(), for callers that create the folder on a background thread. Called on rank
// 0, on any thread. Creates the folder. Returns an IoError as text (fault_of()), empty if there was none.
std::string opened(const std::string& directory, const SavePlan& plan, FileSystem& files, OpenSave& save);
// The second part of begin_save(). Collective. On rank 0, `fault` and `save` are results of opened(). If there was a
// fault, throws it as an IoError on all ranks. Otherwise all ranks get the folder's name.
void agree_on_folder(const std::string& fault, OpenSave& save, Communicator& world);

// The first of the three parts of end_save(), for callers that publish on a background thread. Collective. On rank 0,
// returns what all ranks wrote; on other ranks the result is empty. If a report has a fault, removes what was written
// and throws the same IoError on all ranks.
ManifestParts gather_reports(OpenSave& save, ShardReport mine, Communicator& world);
// The second part of end_save(). Called on rank 0, on any thread. Publishes `manifest`, which has the result of
// gather_reports() and the metadata. `tokenizer_files` may be null. Returns an IoError as text (fault_of()), after
// removing what was written; empty if there was none.
std::string published(OpenSave save, Manifest manifest, const std::map<std::string, std::string>* tokenizer_files);
// The third part of end_save(). Collective. If `fault`, rank 0's result of published(), is not empty, throws it as an
// IoError on all ranks.
void agree_on_publishing(const std::string& fault, Communicator& world);

// Same as save_checkpoint(), over the caller's file system, so that tests can make any call fail.
void save_checkpoint_to(const std::string& directory, const CheckpointContent& content, Communicator& world,
                        FileSystem& files);

}  // namespace braid::ckpt
