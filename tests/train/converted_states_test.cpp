// Resumes of runs with their states on disk from checkpoints with another optimizer.state_dtype: the values of
// conversions in memory, but not in memory.
#include <gtest/gtest.h>

#include "braid/base/text.h"
#include "braid/param/memory_account.h"
#include "tests/train/layout_run.h"
#include "tests/train/saved_run.h"

namespace braid::train::converted_states_test {
namespace {

class ConvertedStates : public SavedRun {
 protected:
  // Saves what it has loaded.
  static RunSpec spec_of(StateType states) {
    RunSpec spec = saved_spec(OptimizerKind::AdamW, states, {});
    spec.model.width = 128, spec.model.ffn = 512;
    spec.train.steps = 2;
    spec.train.allow_change = {"optimizer.state_dtype"};
    return spec;
  }

  static RunSpec on_disk(RunSpec spec) {
    spec.memory.optimizer = Tier::Disk;
    spec.memory.paths = {"."};  // the files have no names
    spec.memory.chunk_mb = 1.0 / 128;
    return spec;
  }

  // Returns the most bytes that a rank holds beside its own while it loads.
  int64_t peak_of_load(const RunSpec& spec, const std::string& from) {
    int64_t peak = 0;
    on_every_rank(spec, [&](Trainer& trainer) {
      param::account_memory_to(0);
      param::reset_memory_peak(0);
      const int64_t before = param::held_bytes(0);
      trainer.load(path(from));
      peak = param::memory_use(0).peak_total_bytes - before;
    });
    return peak;
  }
};

TEST_F(ConvertedStates, OnDiskAreThoseOfMemoryAndAreNotInMemory) {
  param::install_memory_accounting();
  using enum StateType;
  for (const auto saved : {Float32, BFloat16, Int8}) {
    trained(spec_of(saved), "", cat("saved-", word(saved)));
  }
  int64_t elements = 0;  // of a moment
  for (const auto& [name, tensor] : tensors_of_checkpoint(path("saved-float32"))) {
    if (name.starts_with("adamw.first_moment/")) elements += tensor.numel();
  }
  for (const auto& [saved, run] : {std::pair{Float32, BFloat16},
                                   {Float32, Int8},
                                   {BFloat16, Float32},
                                   {BFloat16, Int8},
                                   {Int8, Float32},
                                   {Int8, BFloat16}}) {
    SCOPED_TRACE(cat(saved, " to ", run));
    const std::string from = cat("saved-", word(saved));
    const RunSpec spec = on_disk(spec_of(run));
    EXPECT_TRUE(same_bits(trained(spec, from), trained(spec_of(run), from)));
    EXPECT_LT(peak_of_load(spec, from), elements) << "less than a byte for each element of a moment";
    EXPECT_GT(peak_of_load(spec_of(run), from), elements) << "in memory";
  }
}

}  // namespace
}  // namespace braid::train::converted_states_test
