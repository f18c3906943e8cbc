// braid ckpt verify: compares every byte of a checkpoint with its manifest.
#include <CLI/CLI.hpp>
#include <iostream>

#include "braid/base/text.h"
#include "braid/ckpt/checkpoint_reader.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/cli/arguments.h"
#include "braid/cli/torch/named_checkpoint.h"

namespace braid::cli {
namespace {

constexpr size_t kMostOfAPath = 2'000;  // bytes that are shown

// Returns `path` if it is a checkpoint, else the newest checkpoint of the run, intact or not: the command must not pass
// over a damaged one.
std::string to_be_verified(const std::string& path) {
  if (PosixFileSystem().exists(path + "/manifest.json")) return path;
  const auto saved = ckpt::saved_checkpoints(path);
  return saved.empty() ? named_checkpoint({"CKPT", path, path}, tell_passed_over) : saved.front().directory;
}

}  // namespace

int ckpt_verify_command(const Words& words) {
  CLI::App app("Reads every byte of a checkpoint and compares it with the manifest.", "braid ckpt verify");
  std::string path;
  app.add_option("CKPT", path, "a folder that braid train wrote; of a run's, the newest checkpoint in it, whole or not")
      ->required();
  if (const auto code = parse_words(app, words)) return *code;

  ckpt::CheckpointReader reader(to_be_verified(path));
  reader.verify();
  int64_t bytes = 0;
  for (const auto& [name, file] : reader.manifest().files) bytes += file.bytes;
  std::cout << printable(reader.folder(), kMostOfAPath) << ": good, "
            << counted(reader.manifest().tensors.size(), "tensor") << " in "
            << counted(reader.manifest().files.size(), "file") << ", " << human_bytes(static_cast<double>(bytes))
            << "\n";
  return 0;
}

}  // namespace braid::cli
