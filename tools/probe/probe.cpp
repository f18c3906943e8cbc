// Asks a LibTorch release the questions braid's design rests on, and prints one line per answer.
// It deliberately uses nothing of braid, so that it can be run first on a new release.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/version.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

struct QueuedWeightGrad {
  at::Tensor x, dy, main_grad;
};

struct RankState {
  std::vector<QueuedWeightGrad> queue;
  std::barrier<>* in_backward = nullptr;
  std::thread::id backward_thread;
};

struct ProbeLinear : torch::autograd::Function<ProbeLinear> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& x, const at::Tensor& w,
                            const at::Tensor& main_grad, RankState* rank) {
    ctx->save_for_backward({x, w});
    ctx->saved_data["main_grad"] = main_grad;
    ctx->saved_data["rank"] = reinterpret_cast<int64_t>(rank);
    return at::matmul(x, w.t());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list dy) {
    auto saved = ctx->get_saved_variables();
    auto* rank = reinterpret_cast<RankState*>(ctx->saved_data["rank"].toInt());
    rank->backward_thread = std::this_thread::get_id();
    if (rank->in_backward) rank->in_backward->arrive_and_wait();
    rank->queue.push_back({saved[0], dy[0], ctx->saved_data["main_grad"].toTensor()});
    return {at::matmul(dy[0], saved[1]), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

bool queued_weight_gradient_equals_autograd() {
  RankState rank;
  auto x = at::randn({5, 8}).requires_grad_(true);
  auto w = at::randn({6, 8}).requires_grad_(true);
  auto main_grad = at::zeros({6, 8});
  at::matmul(x, w.t()).pow(2).sum().backward();
  auto want_dw = w.grad().clone(), want_dx = x.grad().clone();
  x.mutable_grad() = at::Tensor();
  w.mutable_grad() = at::Tensor();
  ProbeLinear::apply(x, w, main_grad, &rank).pow(2).sum().backward();
  for (auto& q : rank.queue) q.main_grad.addmm_(q.dy.t(), q.x);
  return !w.grad().defined() && x.grad().allclose(want_dx) && main_grad.allclose(want_dw);
}

bool backward_runs_on_the_calling_thread_with_a_barrier_inside() {
  std::barrier<> meet(2);
  std::atomic<int> good{0};
  std::vector<std::thread> ranks;
  for (int r = 0; r < 2; ++r) {
    ranks.emplace_back([&] {
      RankState rank{.queue = {}, .in_backward = &meet, .backward_thread = {}};
      auto x = at::randn({5, 8}).requires_grad_(true);
      auto w = at::randn({6, 8}).requires_grad_(true);
      ProbeLinear::apply(x, w, at::zeros({6, 8}), &rank).sum().backward();
      good += rank.backward_thread == std::this_thread::get_id();
    });
  }
  for (auto& t : ranks) t.join();
  return good == 2;
}

// The first at:: call of a thread copies the process-wide count that any thread set last; from then on the thread keeps
// its own. So a rank asks once before it sets.
bool threads_are_set_per_calling_thread() {
  std::atomic<int> other{0};
  at::get_num_threads();
  at::set_num_threads(2);
  std::thread([&] {
    at::get_num_threads();
    at::set_num_threads(1);
    other = at::get_num_threads();
  }).join();
  return at::get_num_threads() == 2 && other == 1;
}

bool generators_are_independent() {
  auto a = at::detail::createCPUGenerator(7), b = at::detail::createCPUGenerator(7);
  auto first = at::randn({16}, a);
  at::randn({16});
  return first.equal(at::randn({16}, b)) && !first.equal(at::randn({16}, a));
}

thread_local int tls_rank = -1;
std::atomic<int64_t> live_bytes[4];

struct TaggedAllocator final : c10::Allocator {
  struct Header {
    size_t bytes;
    int rank;
  };
  static constexpr size_t kHeaderBytes = 64;

  c10::DataPtr allocate(size_t n) override {
    auto* raw = static_cast<char*>(std::aligned_alloc(64, (n + kHeaderBytes + 63) / 64 * 64));
    const int slot = tls_rank < 0 ? 3 : tls_rank;
    *reinterpret_cast<Header*>(raw) = {n, slot};
    live_bytes[slot] += static_cast<int64_t>(n);
    return {raw + kHeaderBytes, raw + kHeaderBytes, &release, c10::Device(c10::DeviceType::CPU)};
  }
  static void release(void* p) {
    if (!p) return;
    auto* raw = static_cast<char*>(p) - kHeaderBytes;
    auto* header = reinterpret_cast<Header*>(raw);
    live_bytes[header->rank] -= static_cast<int64_t>(header->bytes);
    std::free(raw);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t n) const override { default_copy_data(to, from, n); }
};

bool allocator_counts_blocks_freed_on_another_thread() {
  static TaggedAllocator tagged;
  c10::SetCPUAllocator(&tagged, 1);
  at::Tensor moved;
  std::thread([&] {
    tls_rank = 1;
    moved = at::empty({1024});
  }).join();
  const bool counted = live_bytes[1] == 4096;
  moved = at::Tensor();
  return counted && live_bytes[1] == 0;
}

void say(const char* what, bool holds) { std::printf("%-66s %s\n", what, holds ? "holds" : "DOES NOT HOLD"); }

}  // namespace

int main() {
  std::printf("LibTorch %s\n", TORCH_VERSION);
  say("own Linear: dX at once, dW queued, no .grad on the weight", queued_weight_gradient_equals_autograd());
  say("CPU backward runs on the calling thread, barrier inside works",
      backward_runs_on_the_calling_thread_with_a_barrier_inside());
  say("at::set_num_threads is per calling thread, once it has asked", threads_are_set_per_calling_thread());
  say("generators per rank are independent of the default one", generators_are_independent());
  say("tagged CPU allocator, frees on another thread count right", allocator_counts_blocks_freed_on_another_thread());
  std::printf("threads %s\n", at::get_parallel_info().c_str());
}
