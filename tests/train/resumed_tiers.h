// Resumes between runs whose tensors are in memory and on disk.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "braid/spec/describe.h"
#include "tests/train/layout_run.h"

namespace braid {

// Expects equal masters after four steps, however a run of `spec` and one of on_disk(spec) go on from each other's
// checkpoint of step 2. path() gives a place for a checkpoint.
inline void expect_resumes_between_tiers(RunSpec spec, const std::function<RunSpec(const RunSpec&)>& on_disk,
                                         const std::function<std::string(const std::string&)>& path) {
  spec.train.steps = 4;
  spec.data.paths = {"text"};  // for the configuration that a checkpoint holds; never opened
  spec.data.tokenizer = "made-up";
  const RunSpec disk = on_disk(spec);
  const auto trained = [&](const RunSpec& run, const std::string& from, const std::string& to) {
    std::map<std::string, at::Tensor> params;
    std::mutex lock;
    on_every_rank(run, [&](train::Trainer& trainer) {
      if (!from.empty()) trainer.load(path(from));
      while (trainer.num_steps() < 2) trainer.step();
      if (!to.empty()) trainer.save(path(to), spec::to_toml(run));
      while (trainer.num_steps() < 4) trainer.step();
      const std::scoped_lock hold(lock);
      collect(trainer, params, Held::Masters);
    });
    return params;
  };
  const auto want = trained(spec, "", "resident");
  EXPECT_TRUE(same_bits(trained(disk, "", "disk"), want));
  EXPECT_TRUE(same_bits(trained(disk, "resident", ""), want));
  EXPECT_TRUE(same_bits(trained(spec, "disk", ""), want));
  EXPECT_TRUE(same_bits(trained(disk, "disk", ""), want));
}

}  // namespace braid
