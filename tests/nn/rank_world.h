// The state of one rank of a test: parameters with formula values, a sink whose slots start as NaN, a queue.
#pragma once

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "braid/comm/local/run_ranks.h"
#include "braid/nn/block.h"
#include "braid/param/grad_sink.h"
#include "tests/nn/formula_values.h"
#include "tests/nn/placed.h"

namespace braid {

struct RankWorld {
  RankWorld(const layout::ModelParams& params, Communicator& tensor, at::ScalarType dtype = at::kDouble)
      : store(params, Reduction::Fast, dtype, 1),
        sink(param::accumulating_sink(store)),
        queue(*sink),
        context{tensor, queue} {
    const at::NoGradGuard no_grad;
    for (param::Parameter& p : store.params()) {
      p.master.copy_(place(formula_parameter(p.name, p.placement.global_shape), p.placement));
      p.main_grad.fill_(std::numeric_limits<double>::quiet_NaN());
    }
    store.round_masters();
  }

  param::ParamStore store;
  std::unique_ptr<param::GradSink> sink;
  param::WeightGradQueue queue;
  nn::RankContext context;
};

// Results by name, collected from ranks that are threads.
class Gathering {
 public:
  explicit Gathering(int num_ranks) : num_ranks_(num_ranks) {}
  void put(const std::string& name, int rank, const mesh::Placement& placement, const at::Tensor& local) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto& ranks = placed_[name];
    ranks.resize(num_ranks_);
    ranks[rank] = {placement, local.detach().clone()};
  }
  void put_replicated(const std::string& name, int rank, const at::Tensor& tensor) {
    put(name, rank, mesh::replicated(tensor.sizes().vec()), tensor);
  }
  void put_gradients(int rank, const RankWorld& world) {
    for (const param::Parameter& p : world.store.params()) {
      EXPECT_FALSE(p.data.grad().defined()) << p.name << ": gradients go through the queue only";
      put("grad." + p.name, rank, p.placement, p.main_grad);
    }
  }
  std::map<std::string, at::Tensor> global() const {
    std::map<std::string, at::Tensor> all;
    for (const auto& [name, ranks] : placed_) {
      SCOPED_TRACE(name);
      all[name] = gather_placed(ranks);
    }
    return all;
  }

 private:
  int num_ranks_;
  std::mutex mutex_;
  std::map<std::string, std::vector<Placed>> placed_;
};

// |a - b| relative to |b|, in the Frobenius norm.
inline double relative_error(const at::Tensor& a, const at::Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  const double norm = b.to(at::kDouble).norm().item<double>();
  const double difference = a.to(at::kDouble).sub(b.to(at::kDouble)).norm().item<double>();
  return norm > 0 ? difference / norm : difference;
}

inline void expect_equal(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b,
                         double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : b) {
    ASSERT_TRUE(a.contains(name)) << name;
    EXPECT_LT(relative_error(a.at(name), tensor), tolerance) << name;
  }
}

}  // namespace braid
