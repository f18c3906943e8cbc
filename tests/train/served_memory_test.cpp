// The memory of parameter servers, byte for byte: on the ranks beside which they run, and nothing on the others.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/param/param_store.h"
#include "braid/sync/server/key_ranges.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/served_run.h"

namespace braid::train::served_memory_test {
namespace {

struct Measured {
  std::vector<param::MemoryUse> after_steps, after_saving;  // by world rank
  std::vector<int64_t> elements;
};

Measured measured(const RunSpec& spec, const std::string& folder) {
  param::install_memory_accounting();
  Measured found;
  const data::Corpus corpus = tiny_corpus();
  run_ranks(mesh::DeviceMesh(spec.mesh).num_ranks(), [&](Communicator& world) {
    at::get_num_threads();
    at::set_num_threads(1);
    param::account_memory_to(world.rank());
    param::reset_memory_peak(world.rank());
    Trainer trainer(spec, corpus, world);
    trainer.step();
    const StepReport before = trainer.step();
    trainer.save(folder, "");
    trainer.load(folder);
    const StepReport after = trainer.step();
    const at::Tensor mine = at::full({1}, trainer.model().params().num_flat(), at::kLong);
    const at::Tensor all = at::full({world.size()}, 0, at::kLong);
    world.all_gather(all, mine).wait_host();
    if (world.rank() != 0) return;
    found = {before.memory, after.memory, {all.const_data_ptr<int64_t>(), all.const_data_ptr<int64_t>() + all.numel()}};
  });
  return found;
}

int64_t bytes(const param::MemoryUse& use, param::MemoryCategory category) {
  return use.bytes[static_cast<size_t>(category)];
}

class ServedMemory : public ScratchFolder {};

// Servers keep the parameters, the states of their rule, and what workers read last; a worker has no moments.
//
//   bytes per float32 parameter      worker: 4 parameters, 4 gradients     servers: 8 sgd, 12 adagrad, 16 adamw
//   with bfloat16 weights            worker: 2, 4, and 4 of masters        the same
//   peak with a save                                                       8 sgd, 16 adagrad, 24 adamw
TEST_F(ServedMemory, IsWhatTheFormulasSay) {
  const std::pair<const char*, int> rules[] = {{"sgd", 8}, {"adagrad", 12}, {"adamw", 16}};
  for (const auto& [rule, per_parameter] : rules) {
    for (const MeshSpec& mesh : {MeshSpec{.data = 2}, MeshSpec{.pipe = 2, .data = 2}}) {
      for (const char* dtype : {"float32", "bfloat16"}) {
        SCOPED_TRACE(cat(rule, " pipe ", mesh.pipe, " ", dtype));
        const bool narrow = std::string(dtype) == "bfloat16";
        if (!full_run() && narrow == (mesh.pipe == 1)) continue;
        RunSpec spec = served_spec({"1f1b", mesh});
        spec.train.dtype = value_of<DType>(dtype).value();
        spec.optimizer.kind = value_of<OptimizerKind>(rule).value();
        spec.optimizer.momentum = 0;
        const Measured found = measured(spec, path(cat(rule, mesh.pipe, dtype)));
        ASSERT_EQ(found.after_steps.size(), found.elements.size());
        for (size_t rank = 0; rank < found.elements.size(); ++rank) {
          const int servers = spec.sync.servers, worker = static_cast<int>(rank) / mesh.pipe;
          const sync::server::KeyRanges ranges(found.elements[rank], servers, param::ParamStore::kAlign);
          int64_t served = 0;  // elements of the servers beside this rank
          for (int server = worker; server < servers; server += mesh.data) served += ranges.of(server).size();
          for (const param::MemoryUse& use : {found.after_steps[rank], found.after_saving[rank]}) {
            EXPECT_EQ(bytes(use, param::MemoryCategory::Parameters), (narrow ? 2 : 4) * found.elements[rank]);
            EXPECT_EQ(bytes(use, param::MemoryCategory::Gradients), 4 * found.elements[rank]);
            EXPECT_EQ(bytes(use, param::MemoryCategory::Optimizer), (narrow ? 4 : 0) * found.elements[rank]);
            EXPECT_EQ(bytes(use, param::MemoryCategory::Servers), per_parameter * served);
          }
          const int at_save = per_parameter + (per_parameter - 8);
          EXPECT_EQ(found.after_saving[rank].peak_bytes[static_cast<size_t>(param::MemoryCategory::Servers)],
                    at_save * served);
        }
      }
    }
  }
}

}  // namespace
}  // namespace braid::train::served_memory_test
