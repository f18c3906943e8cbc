// Threads of the host as a team, for the bodies of device kernels.
#pragma once

#include <barrier>
#include <functional>
#include <thread>
#include <vector>

namespace braid {

class HostTeam {
 public:
  struct Shared {
    explicit Shared(int size) : barrier(size), values(static_cast<size_t>(size)) {}
    std::barrier<> barrier;
    std::vector<std::vector<double>> values;
  };
  HostTeam(int rank, Shared& shared) : rank_(rank), shared_(shared) {}

  int64_t rank() const { return rank_; }
  int64_t size() const { return static_cast<int64_t>(shared_.values.size()); }

  template <int K, class M>
  void sum(M (&values)[K]) const {
    reduce(values, [](double a, double b) { return a + b; });
  }
  template <class M>
  M max(M value) const {
    M values[1] = {value};
    reduce(values, [](double a, double b) { return a > b ? a : b; });
    return values[0];
  }

 private:
  template <int K, class M, class Combine>
  void reduce(M (&values)[K], const Combine& combine) const {
    shared_.values[static_cast<size_t>(rank_)].assign(values, values + K);
    shared_.barrier.arrive_and_wait();
    for (int k = 0; k < K; ++k) {
      double all = shared_.values[0][k];
      for (size_t r = 1; r < shared_.values.size(); ++r) all = combine(all, shared_.values[r][k]);
      values[k] = static_cast<M>(all);
    }
    shared_.barrier.arrive_and_wait();
  }

  int rank_;
  Shared& shared_;
};

inline void run_team(int size, const std::function<void(const HostTeam&)>& body) {
  HostTeam::Shared shared(size);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { body(HostTeam(rank, shared)); });
}

}  // namespace braid
