// braid ckpt from-hf: converts a Hugging Face directory to a checkpoint.
#include <CLI/CLI.hpp>
#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/weights/from_hf.h"

namespace braid::cli {
namespace {

constexpr size_t kMostOfFromHf = 20'000;  // bytes

}  // namespace

int ckpt_from_hf_command(const Words& words) {
  CLI::App app("Makes a checkpoint of weights alone, at step 0, of a Hugging Face directory.", "braid ckpt from-hf");
  weights::FromHf request;
  app.add_option("DIR", request.directory,
                 "a folder with config.json, model.safetensors or its shards, and perhaps tokenizer.json")
      ->required();
  app.add_option("OUT", request.checkpoint, "the checkpoint; there must be nothing, or an empty folder")->required();
  if (const auto code = parse_words(app, words)) return *code;

  if (path_kind(request.directory) != PathKind::Folder) {
    throw ConfigError({{"DIR", request.directory, "must be a Hugging Face directory, and is no folder", ""}});
  }
  PosixFileSystem files;
  for (const auto& sentence : weights::checkpoint_from_hf(request, files))
    std::cout << printable(sentence, kMostOfFromHf, LineBreaks::Kept) << "\n";
  std::cout << "checkpoint " << printable(request.checkpoint, kMostOfFromHf) << std::endl;
  return 0;
}

}  // namespace braid::cli
