// braid ckpt to-hf: converts a checkpoint's weights to a Hugging Face directory.
#include <CLI/CLI.hpp>
#include <iostream>

#include "braid/base/file_system.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/torch/named_checkpoint.h"
#include "braid/train/resume.h"
#include "braid/weights/to_hf.h"

namespace braid::cli {
namespace {

constexpr size_t kMostOfToHf = 20'000;  // bytes
constexpr double kGigabyte = 1e9;

}  // namespace

int ckpt_to_hf_command(const Words& words) {
  CLI::App app("Writes a checkpoint's weights as a directory that Hugging Face's transformers load.",
               "braid ckpt to-hf");
  std::string given, type;
  double most_gigabytes = 5;
  weights::ToHf request;
  app.add_option("CHECKPOINT", given, "a checkpoint, or the folder of a run: the newest in it")->required();
  app.add_option("DIR", request.directory, "the directory; there must be nothing, or an empty folder")->required();
  app.add_option("--dtype", type, "of the weights that are written; left out: as the checkpoint has them")
      ->check(one_of({"float64", "float32", "bfloat16"}));
  app.add_option("--shard-gb", most_gigabytes, "gigabytes of weights in one file at most; 0: all in one")
      ->check(not_negative())
      ->capture_default_str();
  if (const auto code = parse_words(app, words)) return *code;

  request.checkpoint = named_checkpoint({"CHECKPOINT", given, given}, [](const std::string& fault) {
    std::cerr << "braid: passed over " << printable(fault, kMostOfToHf) << "\n";
  });
  const RunSpec spec = train::saved_spec(ckpt::read_checkpoint_info(request.checkpoint), request.checkpoint);
  train::refuse_other_shapes(spec.model, request.checkpoint);
  ckpt::verify_checkpoint(request.checkpoint);
  request.model = spec.model;
  request.written = spec.train.dtype == DType::Float64 ? at::kDouble : at::kFloat;
  if (type == "bfloat16") request.written = at::kBFloat16;
  if (type == "float32") request.written = at::kFloat;
  if (type == "float64") request.written = at::kDouble;
  request.most_file_bytes = static_cast<int64_t>(most_gigabytes * kGigabyte);
  PosixFileSystem files;
  const auto sentences = weights::hf_from_checkpoint(request, files);
  for (const auto& sentence : sentences) std::cout << printable(sentence, kMostOfToHf) << "\n";
  std::cout << "directory " << printable(request.directory, kMostOfToHf) << std::endl;
  return 0;
}

}  // namespace braid::cli
