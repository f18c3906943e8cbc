// A program with a data race that ThreadSanitizer has to report, so that its silence elsewhere means something: rank 0
// reads its tensor without waiting for the all-reduce that rank 1 carries out on it.
// Not a test of the communicator: it is used wrongly here.
#include <ATen/ops/zeros.h>

#include <atomic>
#include <cstdio>

#include "braid/comm/local/run_ranks.h"

int main() {
  float sum = 0;
  std::atomic<bool> written{false};
  braid::run_ranks(2, [&](braid::Communicator& world) {
    at::Tensor tensor = at::zeros({1000}, at::kFloat);
    braid::Work work = world.all_reduce(tensor, braid::ReduceOp::Sum);
    if (world.rank() == 1) {
      work.wait_host();
      written.store(true, std::memory_order_relaxed);  // relaxed: orders nothing
    } else {
      // Until rank 1 has written, and once more: reads and writes meet however the threads are timed.
      const float* data = tensor.const_data_ptr<float>();
      for (bool last = false; !last;) {
        last = written.load(std::memory_order_relaxed);
        for (int i = 0; i < 1000; ++i) sum += data[i];
      }
    }
  });
  std::printf("no data race was noticed, sum %g\n", sum);
}
