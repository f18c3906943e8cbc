// Their wording.
#include "braid/cli/model_options.h"

#include <iostream>

#include "braid/base/text.h"
#include "braid/cli/named_checkpoint.h"
#include "braid/cli/option_rules.h"

namespace braid {
namespace {

constexpr int kMaxThreads = 256;
constexpr size_t kMostOfFault = 20'000;  // bytes shown

}  // namespace

std::optional<DType> ModelOptions::chosen_dtype() const { return value_of<DType>(dtype); }

void add_checkpoint(CLI::App& app, ModelOptions& options) {
  app.add_option("CHECKPOINT", options.checkpoint,
                 "a folder that braid train wrote, such as runs/quickstart/step-420; of a run's, the newest in it")
      ->required();
}

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option("--threads", options.threads, "0: as many as suit the model")
      ->check(whole_number(0, kMaxThreads))
      ->capture_default_str();
  app.add_option("--dtype", options.dtype, "float32 or bfloat16, to compute with; the run's own where none is given")
      ->check(one_of({"float32", "bfloat16"}));
  app.add_option("--tokenizer", options.tokenizer,
                 "bytes, a tokenizer.json, or a folder with it, in place of the checkpoint's own");
}

std::string checkpoint_directory(const ModelOptions& options) {
  return named_checkpoint({"CHECKPOINT", options.checkpoint, options.checkpoint}, [](const std::string& fault) {
    std::cerr << "braid: passed over " << printable(fault, kMostOfFault) << "\n";
  });
}

}  // namespace braid
