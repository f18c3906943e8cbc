// braid ckpt reshard: writes a checkpoint anew, with its tensors in other files.
#include <CLI/CLI.hpp>
#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/rewrite.h"
#include "braid/cli/arguments.h"
#include "braid/cli/option_rules.h"
#include "braid/cli/torch/named_checkpoint.h"

namespace braid::cli {
namespace {

constexpr int kMostRanks = 65'536;

// Throws ConfigError if one of the names that a save uses exists, or if OUT's parent does not. A save would remove what
// an interrupted save has left under these names, but here they may be files of the user.
void refuse_what_is_there(const std::string& out) {
  PosixFileSystem files;
  std::vector<Problem> problems;
  for (const std::string& path : {out, ckpt::temporary_name(out), ckpt::aside_name(out)}) {
    if (files.exists(path)) problems.push_back({"OUT", out, cat("must be a new name: ", path, " is there"), ""});
  }
  const std::string parent = parent_folder(out.substr(0, out.find_last_not_of('/') + 1));
  if (!files.exists(parent)) problems.push_back({"OUT", out, cat("must lie in a folder: there is no ", parent), ""});
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace

int ckpt_reshard_command(const Words& words) {
  CLI::App app(
      "Writes a checkpoint anew in other files: by default in one of whole tensors for weights and one for the "
      "optimizer.",
      "braid ckpt reshard");
  std::string path;
  ckpt::RewriteRequest request;
  bool weights_only = false;
  app.add_option("CKPT", path, kCheckpointMeaning)->required();
  app.add_option("OUT", request.to, "the folder to write, which must not be there")->required();
  app.add_option("--ranks", request.ranks, "files of each kind, as if so many ranks had written them")
      ->check(whole_number(1, kMostRanks))
      ->capture_default_str();
  app.add_flag("--weights-only", weights_only, "omit optimizer states: for sampling, not for resuming");
  if (const auto code = parse_words(app, words)) return *code;

  refuse_what_is_there(request.to);
  request.from = named_checkpoint({"CKPT", path, path}, tell_passed_over);
  if (weights_only) request.tensors = ckpt::RewriteRequest::Tensors::Weights;
  PosixFileSystem files;
  ckpt::rewrite_checkpoint(request, files);
  std::cout << printable(request.to, 2'000) << " written\n";
  return 0;
}

}  // namespace braid::cli
