// Saves and loads named tensors with placements, on any mesh. Format: docs/checkpoint_format.md.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braid/base/digest.h"
#include "braid/comm/communicator.h"
#include "braid/mesh/placement.h"

namespace braid::ckpt {

// One rank's part of one tensor. A rank may hold several parts under the same name.
struct PlacedTensor {
  std::string name;  // "wte.weight"; an optimizer's states have a "/": "adamw.first_moment/wte.weight"
  mesh::Placement placement;
  at::Tensor local;  // contiguous, of shape placement.local_shape
};

// The metadata of a checkpoint. The configuration is kept as text, so that ckpt does not depend on spec.
struct CheckpointInfo {
  int64_t step = 0;
  std::string config_toml;                      // the resolved configuration, in TOML
  std::string tokenizer;                        // DataSpec::tokenizer
  int64_t next_sample = 0;                      // data cursor: the first sample of the next step
  std::map<std::string, double> counters = {};  // numbers of the trainer by name: "optimizer_steps"
  std::vector<ContentMark> data = {};           // the run's data sources, in order; empty: unknown
  uint64_t tokenizer_hash = 0;                  // identifies the tokenizer by content; 0: unknown
  std::string optimizer = {};                   // kind of a torch program's optimizer: "adamw"; empty: unknown
};

// The content of a save. Everything it refers to outlives it.
struct CheckpointContent {
  const std::vector<PlacedTensor>& tensors;
  const CheckpointInfo& info;
  const std::map<std::string, std::string>* tokenizer_files = nullptr;  // contents by file name; null: none
};

// Saves `content` as the checkpoint `directory`, whose parent folder must exist. Collective over `world`. Each rank
// writes its own boxes into its own files. If several ranks hold equal boxes, one of them writes the box, so that all
// ranks write about the same amount. If one rank writes everything, the files are model.safetensors and
// optimizer.safetensors, with whole tensors. Rank 0 adds the tokenizer's files and manifest.json, and renames the
// folder to `directory`. Tensors are saved without padding. The metadata and the tokenizer's files are rank 0's.
// Returns on every rank once the checkpoint is published. Otherwise nothing is published, and every rank throws the
// same IoError, or CommError. save.h has the steps of a save.
void save_checkpoint(const std::string& directory, const CheckpointContent& content, Communicator& world);

// Returns the metadata in the manifest. Throws IoError naming the file and the fault if the manifest violates the
// format.
CheckpointInfo read_checkpoint_info(const std::string& directory);

// Returns the folder that holds the tokenizer's files saved with the checkpoint, after comparing their hashes. Returns
// "" if none were saved. Throws IoError naming a file that was changed.
std::string tokenizer_folder(const std::string& directory);

// Fills every `tensors[i].local` from `directory`, whichever mesh wrote it. A rank reads the rows that its boxes touch.
// Padding is not written. Nothing is written before all of this has been checked:
// * the names, shapes and types of all tensors (ConfigError lists every difference);
// * the sizes and headers of the files, and the digests of all 4 MiB blocks that will be read (IoError).
// In format versions up to 3 a file has one digest. Such files above 4 MiB are not compared here; verify_checkpoint()
// compares them. Tensors of the checkpoint that are not in `tensors` are skipped. Several threads fill the tensors, in
// no fixed order. Not collective.
// REQUIRES: no two of `tensors` share memory.
void load_checkpoint(const std::string& directory, const std::vector<PlacedTensor>& tensors);

// Same as load_checkpoint(), for tensors whose values are not needed if this throws, such as those of a fresh trainer.
// Their values are undefined then. Collective over `world`. Each block is read once, and compared with its digest
// before its bytes are copied. Blocks that only one rank reads bypass the page cache. Large files of versions up to 3
// are compared too, split over the ranks. Returns on every rank once all ranks have filled their tensors. Otherwise all
// ranks throw the same error: one ConfigError with every difference that any rank found, before anything is filled; or
// the IoError of the lowest rank that has one.
void load_in_one_pass(const std::string& directory, const std::vector<PlacedTensor>& tensors, Communicator& world);

// Reads every byte and compares digests with the manifest. Throws IoError naming the file, the tensor and the block
// that were changed. Not collective.
void verify_checkpoint(const std::string& directory);

}  // namespace braid::ckpt
