// The division of shares, and the agreement on it.
#include "braid/train/lost_workers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "braid/comm/agree.h"

namespace braid::train {

int SharedWork::place_of(int worker) const {
  return static_cast<int>(std::ranges::find(workers, worker) - workers.begin());
}

std::vector<SampleShare> SharedWork::taken_by(int place) const {
  std::vector<SampleShare> shares;
  for (size_t i = static_cast<size_t>(place); i < taken.size(); i += workers.size()) shares.push_back(taken[i]);
  return shares;
}

std::vector<int> SharedWork::lost_read_by(int place, int64_t of_step) const {
  std::vector<int> lost;
  for (int worker = 0; worker < num_data; ++worker) {
    const bool is_mine = (of_step + worker) % std::ssize(workers) == place;
    if (is_mine && !std::ranges::binary_search(workers, worker)) lost.push_back(worker);
  }
  return lost;
}

std::vector<SampleShare> SharedWork::shares_of(int place, int64_t end) const {
  std::vector<SampleShare> shares = taken_by(place);
  for (int64_t each = step; each < end; ++each) {
    shares.push_back({each, workers[static_cast<size_t>(place)]});
    for (const int lost : lost_read_by(place, each)) shares.push_back({each, lost});
  }
  return shares;
}

LostWorkers::LostWorkers(comm::Roster& roster, sync::PushCounts& pushes, int worker, int num_data)
    : roster_(roster), pushes_(pushes), worker_(worker), num_data_(num_data) {}

// Pushes are counted before a worker may be lost.
void LostWorkers::begin(int64_t step, Communicator& workers) {
  agree(step, {}, workers);
  roster_.begin();
}

std::vector<int> LostWorkers::read_here(int64_t step) const {
  return begun() ? work_.lost_read_by(work_.place_of(worker_), step) : std::vector<int>();
}

double LostWorkers::steps_at_rate_of(int64_t step) const {
  return static_cast<double>((1 + std::ssize(read_here(step))) * std::ssize(workers())) / num_data_;
}

std::vector<int> LostWorkers::evaluated_here(int64_t step) const {
  std::vector<int> ranks = read_here(step);
  ranks.insert(ranks.begin(), worker_);
  return ranks;
}

std::vector<SampleShare> LostWorkers::take_over(int64_t step, Communicator& workers) {
  std::vector<SampleShare> left;
  std::vector<LostWorker> lost;
  for (size_t place = 0; place < work_.workers.size(); ++place) {
    const int worker = work_.workers[place];
    if (std::ranges::binary_search(roster_.members(), worker)) continue;
    const std::vector<SampleShare> shares = work_.shares_of(static_cast<int>(place), step);
    const int64_t num_done = std::min(pushes_.of_lost(worker) - work_.pushes[place], std::ssize(shares));
    std::copy(shares.begin() + num_done, shares.end(), std::back_inserter(left));
    lost.push_back({worker, step, std::ssize(shares) - num_done});
  }
  agree(step, std::move(left), workers);
  lost_.insert(lost_.end(), lost.begin(), lost.end());
  return work_.taken_by(work_.place_of(worker_));
}

void LostWorkers::agree(int64_t step, std::vector<SampleShare> taken, Communicator& workers) {
  std::vector<int64_t> pushes = comm::gather(workers, "pushes of workers", pushes_.own());
  work_ = {num_data_, step, roster_.members(), std::move(pushes), std::move(taken)};
}

std::vector<LostWorker> LostWorkers::take_lost() { return std::exchange(lost_, {}); }

}  // namespace braid::train
