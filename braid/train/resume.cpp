// Compares by key, through the one list of fields.
#include "braid/train/resume.h"

#include <limits>

#include "braid/base/text.h"
#include "braid/spec/fields.h"
#include "braid/spec/parse.h"

namespace braid {
namespace {

constexpr HostLimits kAnyMesh{std::numeric_limits<int>::max()};  // the checkpoint may come from a larger host

constexpr const char* kFixedKeys[] = {"model.family",   "model.layers",  "model.heads",
                                      "model.width",    "model.context", "model.vocab",
                                      "data.tokenizer", "data.include",  "data.validation_fraction",
                                      "train.batch",    "train.seed",    "train.dtype"};

}  // namespace

RunSpec saved_spec(const CheckpointInfo& info, const std::string& directory) {
  return parse_run(info.config_toml, directory + "/manifest.json", {}, kAnyMesh);
}

std::vector<Problem> resume_problems(const RunSpec& spec, const CheckpointInfo& info, const std::string& directory) {
  std::vector<Problem> found;
  const auto refuse = [&](const char* key, const std::string& was) {
    found.push_back({key, value_text(*find_field(key), spec), cat("must be as in ", directory), was});
  };
  if (!info.config_toml.empty()) {
    const RunSpec saved = saved_spec(info, directory);
    for (const char* key : kFixedKeys) {
      const std::string was = value_text(*find_field(key), saved);
      if (value_text(*find_field(key), spec) != was) refuse(key, was);
    }
  } else if (info.next_sample != info.step * spec.train.batch) {
    refuse("train.batch", info.step > 0 ? cat(info.next_sample / info.step) : "");
  }
  if (spec.train.steps <= info.step) {
    found.push_back({"train.steps", cat(spec.train.steps),
                     cat("must be more than the ", info.step, " steps that ", directory, " has done"),
                     cat(info.step + 1)});
  }
  return found;
}

}  // namespace braid
