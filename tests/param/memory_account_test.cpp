// Bytes by rank and category. Ranks here are numbers that no other test uses.
#include "braid/param/memory_account.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <limits>
#include <thread>

#include "braid/base/errors.h"
#include "braid/base/memory_error.h"
#include "braid/param/param_store.h"

namespace braid::param::memory_account_test {
namespace {

int64_t now(int rank, MemoryCategory category) { return memory_use(rank).bytes[static_cast<int>(category)]; }
int64_t peak(int rank, MemoryCategory category) { return memory_use(rank).peak_bytes[static_cast<int>(category)]; }

// Runs `body` on a thread of its own that allocates for `rank`.
template <class Body>
void as_rank(int rank, Body body) {
  install_memory_accounting();
  std::thread([&] {
    account_memory_to(rank);
    body();
  }).join();
}

at::Tensor bytes_of(int64_t bytes) { return at::empty({bytes}, at::kByte); }

TEST(MemoryAccount, AnAllocationBeyondTheLimitThrowsTheAccount) {
  as_rank(909, [] {
    const MemoryScope scope(MemoryCategory::Gradients);
    const at::Tensor held = bytes_of(int64_t{1} << 20);
    limit_memory(909, int64_t{3} << 20);
    const at::Tensor more = bytes_of(int64_t{2} << 20);  // all that is allowed
    try {
      const MemoryScope activations(MemoryCategory::Activations);
      bytes_of(1000);
      FAIL() << "beyond the limit";
    } catch (const MemoryError& error) {
      EXPECT_EQ(error.shortage().rank, 909);
      EXPECT_EQ(error.shortage().held_bytes, 3 << 20);
      EXPECT_EQ(error.shortage().asked_bytes, 1000);
      EXPECT_EQ(error.shortage().limit_bytes, 3 << 20);
      EXPECT_STREQ(error.what(),
                   "rank 909 needs 1000 B more for activations, beyond memory.limit_gb (3.0 MiB); it holds 3.0 MiB "
                   "(gradients 3.0 MiB)");
    }
    EXPECT_EQ(now(909, MemoryCategory::Activations), 0);
    limit_memory(909, 0);
    bytes_of(int64_t{4} << 20);
  });
}

TEST(MemoryAccount, MeasurementsAreWithinTheLimitAndInNoPeak) {
  as_rank(908, [] {
    limit_memory(908, 3000);
    const at::Tensor held = bytes_of(1000);
    {
      const UncountedScope uncounted;
      const at::Tensor measured = bytes_of(1500);
      const UncountedBytes more(400);
      EXPECT_EQ(bytes_left(), 100);
      EXPECT_THROW(bytes_of(101), MemoryError);
      EXPECT_THROW(UncountedBytes(101), MemoryError);
    }
    EXPECT_EQ(bytes_left(), 2000);
    EXPECT_EQ(memory_use(908).peak_total_bytes, 1000);
    limit_memory(908, 0);
    EXPECT_EQ(bytes_left(), std::numeric_limits<int64_t>::max());
  });
}

// The child is killed, and frees nothing.
TEST(MemoryAccount, AccountsOfAKilledProcessCanBeReadWhereTheyAreShared) {
  install_memory_accounting();
  {
    const SharedAccounts shared;
    const pid_t child = ::fork();
    if (child == 0) {
      account_memory_to(907);
      const MemoryScope scope(MemoryCategory::Gradients);
      const at::Tensor held = bytes_of(3 << 20);
      ::raise(SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(account_text(907), "3.0 MiB (gradients 3.0 MiB)");
    EXPECT_EQ(held_bytes(907), 3 << 20);
  }
  EXPECT_EQ(held_bytes(907), 0) << "of this process";
}

TEST(MemoryAccount, CountsByCategoryAndScopesNest) {
  as_rank(910, [] {
    const at::Tensor other = bytes_of(1000);
    at::Tensor parameters, gradients, again;
    {
      const MemoryScope outer(MemoryCategory::Parameters);
      parameters = bytes_of(300);
      {
        const MemoryScope inner(MemoryCategory::Gradients);
        gradients = bytes_of(70);
      }
      again = bytes_of(5);
    }
    const at::Tensor last = bytes_of(10000);
    EXPECT_EQ(now(910, MemoryCategory::Other), 11000);
    EXPECT_EQ(now(910, MemoryCategory::Parameters), 305);
    EXPECT_EQ(now(910, MemoryCategory::Gradients), 70);
    EXPECT_EQ(now(910, MemoryCategory::Optimizer), 0);
  });
  for (int c = 0; c < kNumMemoryCategories; ++c) EXPECT_EQ(memory_use(910).bytes[c], 0) << "all freed";
}

TEST(MemoryAccount, PeaksAreOfEachCategoryAndOfTheSum) {
  as_rank(911, [] {
    {
      const MemoryScope scope(MemoryCategory::Activations);
      bytes_of(100);  // freed at once
    }
    at::Tensor kept = bytes_of(60);
    EXPECT_EQ(peak(911, MemoryCategory::Activations), 100);
    EXPECT_EQ(peak(911, MemoryCategory::Other), 60);
    EXPECT_EQ(memory_use(911).peak_total_bytes, 100) << "never both at once";
    kept.reset();
    reset_memory_peak(911);
    EXPECT_EQ(memory_use(911).peak_total_bytes, 0);
    EXPECT_EQ(peak(911, MemoryCategory::Activations), 0);
    bytes_of(8);
    EXPECT_EQ(memory_use(911).peak_total_bytes, 8);
  });
}

TEST(MemoryAccount, AFreeOnAnotherThreadIsTakenOffTheOwner) {
  at::Tensor travels;
  as_rank(912, [&] {
    const MemoryScope scope(MemoryCategory::Communication);
    travels = bytes_of(4096);
  });
  EXPECT_EQ(now(912, MemoryCategory::Communication), 4096);
  as_rank(913, [&] { travels.reset(); });
  EXPECT_EQ(now(912, MemoryCategory::Communication), 0);
  EXPECT_EQ(now(913, MemoryCategory::Other), 0);
}

TEST(MemoryAccount, ThreadsThatNeverSaidCountNowhere) {
  install_memory_accounting();
  at::Tensor untagged;
  std::thread([&] { untagged = bytes_of(1 << 20); }).join();
  as_rank(914, [&] { untagged.reset(); });
  EXPECT_EQ(memory_use(914).peak_total_bytes, 0);
}

// 64 is what LibTorch's own allocator promises its kernels.
TEST(MemoryAccount, BlocksAreAlignedAndUsable) {
  as_rank(915, [] {
    for (const int64_t bytes : {0, 1, 63, 64, 65, 4095, 4096, 1 << 20, 5 << 20}) {
      const at::Tensor block = bytes_of(bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data_ptr()) % 64, 0u) << bytes;
      if (bytes > 0) std::memset(block.data_ptr(), 0xA5, bytes);
      EXPECT_EQ(now(915, MemoryCategory::Other), bytes);
    }
    const at::Tensor product = at::matmul(at::ones({65, 130}), at::ones({130, 33}));
    EXPECT_EQ(product.const_data_ptr<float>()[0], 130);
  });
}

TEST(MemoryAccount, RawAllocationsAndReleasedContextsAreCounted) {
  as_rank(916, [] {
    c10::Allocator* const allocator = c10::GetCPUAllocator();
    void* raw = allocator->raw_allocate(500);
    c10::DataPtr owned = allocator->allocate(24);
    EXPECT_EQ(now(916, MemoryCategory::Other), 524);
    void* const context = owned.release_context();
    EXPECT_EQ(now(916, MemoryCategory::Other), 524);
    allocator->raw_deallocate(context);
    allocator->raw_deallocate(raw);
    EXPECT_EQ(now(916, MemoryCategory::Other), 0);
    allocator->raw_deallocate(allocator->raw_allocate(0));
  });
}

TEST(MemoryAccount, ResizedStorageIsCountedOnce) {
  as_rank(917, [] {
    at::Tensor grows = bytes_of(10);
    grows.resize_({1000});
    EXPECT_EQ(now(917, MemoryCategory::Other), 1000);
  });
}

TEST(MemoryAccount, ParametersAndGradientsAreCountedAsSuch) {
  as_rank(918, [] {
    const layout::ParamSpec first{"w", mesh::replicated({1500}), {}, model::WeightDecay::Yes, 0, 2};
    layout::ParamSpec second = first;
    second.use = 1;
    const ParamStore store({{"a", {first}}, {"b", {second}}}, Reduction::Reproducible, at::kFloat, 1);
    EXPECT_EQ(now(918, MemoryCategory::Parameters), 2048 * 4);
    EXPECT_EQ(now(918, MemoryCategory::Gradients), 2 * 2048 * 4);
  });
}

TEST(MemoryAccount, BackwardCountsForTheThreadThatRunsIt) {
  as_rank(919, [] {
    at::Tensor weight = at::ones({256});
    weight.requires_grad_(true);
    const at::Tensor loss = at::mul(weight, weight).sum();
    const MemoryScope scope(MemoryCategory::Activations);
    loss.backward();
    EXPECT_EQ(now(919, MemoryCategory::Activations), 1024) << "the gradient";
  });
}

TEST(MemoryAccount, ManyThreadsAddUp) {
  install_memory_accounting();
  constexpr int kThreads = 4, kRounds = 2000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([] {
      account_memory_to(920);
      for (int i = 0; i < kRounds; ++i) bytes_of(100 + i % 7);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(now(920, MemoryCategory::Other), 0);
  EXPECT_GE(memory_use(920).peak_total_bytes, 106);
  EXPECT_LE(memory_use(920).peak_total_bytes, kThreads * 106);
}

TEST(MemoryAccount, RanksHaveALimitAndCategoriesHaveNames) {
  EXPECT_THROW(account_memory_to(1024), InternalError);
  EXPECT_THROW(memory_use(-1), InternalError);
  EXPECT_EQ(text(MemoryCategory::Parameters), "parameters");
  EXPECT_EQ(text(MemoryCategory::Other), "other");
}

}  // namespace
}  // namespace braid::param::memory_account_test
