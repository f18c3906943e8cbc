// A program with a data race that ThreadSanitizer has to report, so that its silence elsewhere means something: rank 0
// reads its tensor without waiting for the all-reduce that rank 1 carries out on it.
// Not a test of the communicator: it is used wrongly here.
#include <ATen/ops/zeros.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "braid/comm/local/run_ranks.h"

int main() {
  float sum = 0;
  braid::run_ranks(2, [&sum](braid::Communicator& world) {
    at::Tensor tensor = at::zeros({1000}, at::kFloat);
    braid::Work work = world.all_reduce(tensor, braid::ReduceOp::Sum);
    if (world.rank() == 1) {
      work.wait_host();
    } else {
      // For half a second, so that rank 1's writes fall among the reads however the threads are timed.
      const float* data = tensor.const_data_ptr<float>();
      for (int round = 0; round < 50; ++round) {
        for (int i = 0; i < 1000; ++i) sum += data[i];
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  });
  std::printf("no data race was noticed, sum %g\n", sum);
}
