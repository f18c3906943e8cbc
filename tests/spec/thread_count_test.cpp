// As many threads as have work, never more than a rank's share of the cores.
#include <gtest/gtest.h>

#include "braid/spec/rank_hosts.h"

namespace braid::spec::thread_count_test {
namespace {

RunSpec sized(int width, int context, int microbatch) {
  RunSpec spec;
  spec.model.width = width;
  spec.model.context = context;
  spec.train.microbatch = microbatch;
  return spec;
}

TEST(ThreadCount, a_tiny_model_has_work_for_one_thread_on_any_machine) {
  const RunSpec tiny = sized(64, 64, 2);
  for (int cores : {1, 2, 16, 128}) EXPECT_EQ(threads_per_rank(tiny, cores), 1) << cores;
  EXPECT_EQ(threads_to_generate(tiny.model, 128), 1);
}

TEST(ThreadCount, grows_with_the_work_of_a_microbatch_up_to_the_share_of_the_cores) {
  EXPECT_EQ(threads_per_rank(sized(384, 64, 2), 2), 2);
  EXPECT_EQ(threads_per_rank(sized(384, 64, 2), 128), 2);
  EXPECT_EQ(threads_per_rank(sized(384, 64, 4), 128), 4);
  EXPECT_EQ(threads_per_rank(sized(4096, 4096, 1), 128), 128);
  EXPECT_EQ(threads_to_generate(sized(4096, 4096, 1).model, 128), 128);

  RunSpec spread = sized(4096, 4096, 1);
  spread.mesh.pipe = 2;
  EXPECT_EQ(threads_per_rank(spread, 16), 8);
  EXPECT_EQ(threads_per_rank(spread, 1), 1) << "more ranks than cores";
}

TEST(ThreadCount, a_tensor_rank_has_its_slice_of_the_work) {
  RunSpec spec = sized(384, 64, 4);
  spec.mesh.tensor = 2;
  EXPECT_EQ(threads_per_rank(spec, 128), 2);
}

TEST(ThreadCount, is_one_in_reproducible_mode_and_otherwise_what_is_asked_for) {
  RunSpec spec = sized(4096, 4096, 1);
  spec.train.reduction = Reduction::Reproducible;
  EXPECT_EQ(threads_per_rank(spec, 16), 1);
  spec.train.threads = 3;
  EXPECT_EQ(threads_per_rank(spec, 16), 3);
}

}  // namespace
}  // namespace braid::spec::thread_count_test
