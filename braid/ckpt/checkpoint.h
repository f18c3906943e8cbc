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

// One rank's part of one tensor, or one of several parts under the same name.
struct PlacedTensor {
  std::string name;  // "wte.weight"; an optimizer's states have a "/": "adamw.first_moment/wte.weight"
  mesh::Placement placement;
  at::Tensor local;  // placement.local_shape, contiguous
};

// A checkpoint's data beside its tensors. The configuration is kept as text, so that ckpt does not depend on spec.
struct CheckpointInfo {
  int64_t step = 0;
  std::string config_toml;                      // the resolved configuration, in TOML
  std::string tokenizer;                        // DataSpec::tokenizer
  int64_t next_sample = 0;                      // data cursor
  std::map<std::string, double> counters = {};  // the trainer's own numbers by name, "optimizer_steps"
  std::vector<ContentMark> data = {};           // what the run reads its samples from, in order; empty: not known
  uint64_t tokenizer_hash = 0;                  // tells tokenizers apart wherever they lie; 0: not known
  std::string optimizer = {};                   // the kind of a program's own, "adamw"; empty: not known
};

// The content of a save. Everything it refers to outlives it.
struct CheckpointContent {
  const std::vector<PlacedTensor>& tensors;
  const CheckpointInfo& info;
  const std::map<std::string, std::string>* tokenizer_files = nullptr;  // bytes by file name; null: none
};

// Collective over `world`. Every rank writes its own boxes into files of its own; of equal boxes one rank writes, so
// that all have about as much to write. Where one rank writes everything the files are model.safetensors and
// optimizer.safetensors, with whole tensors. Rank 0 adds the tokenizer's files and manifest.json, and renames the
// folder to `directory`; the one that it goes into must be there. Tensors are saved without padding; info and tokenizer
// files are rank 0's. On every rank: returns when the checkpoint is published; throws the same IoError, or CommError,
// with nothing published. In steps: save.h.
void save_checkpoint(const std::string& directory, const CheckpointContent& content, Communicator& world);

// Reads what the manifest says. Throws IoError naming file and byte when anything is not as the format demands.
CheckpointInfo read_checkpoint_info(const std::string& directory);

// The folder in which the tokenizer's files were saved with the checkpoint, compared with their hashes; empty when none
// were. Throws IoError naming the file that was changed.
std::string tokenizer_folder(const std::string& directory);

// Fills every `tensors[i].local` from `directory`, whatever mesh wrote it; a rank reads the rows that its boxes touch.
// Padding is left as it is. Before anything is written, names, shapes and types of all tensors are compared
// (ConfigError lists every difference), and so are the sizes and headers of the files and the digests of all blocks of
// 4 MiB that will be read (IoError); of checkpoints up to version 3, which have digests of whole files only, these are
// left to verify_checkpoint(). Tensors of the checkpoint that nobody asks for are left alone. Threads write, in no
// order: no two of `tensors` share memory. Not collective.
void load_checkpoint(const std::string& directory, const std::vector<PlacedTensor>& tensors);

// The same for tensors whose values nobody needs when this throws, those of a fresh trainer: what they hold is not
// known then. Each block is read once, past the page cache where one rank alone reads it, and compared before its bytes
// go anywhere; files of versions up to 3 are compared too, shared out over the ranks. On every rank: returns when all
// have filled theirs; throws the same: before anything is filled, one ConfigError with
// every difference that any rank found; else the IoError of the lowest rank that found one. Collective over `world`.
void load_in_one_pass(const std::string& directory, const std::vector<PlacedTensor>& tensors, Communicator& world);

// Reads every byte and compares digests with the manifest. Throws IoError naming the file, the tensor and the block
// that were changed. Not collective.
void verify_checkpoint(const std::string& directory);

}  // namespace braid::ckpt
