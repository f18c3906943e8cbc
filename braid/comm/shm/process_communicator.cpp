// Numbers and issues a rank's calls; the Work that it hands back; groups made of requests.
#include "braid/comm/shm/process_communicator.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/waited_work.h"

namespace braid::comm::shm {
namespace {

using ShmWork = WaitedWork<ProgressEngine, Operation>;

// What a rank says in a split. Its area becomes the group's if it comes first in it.
struct SplitRequest {
  int32_t colour, key;
  GroupId area;
};

at::Tensor bytes(size_t count) { return at::empty({static_cast<int64_t>(count)}, at::kByte); }

}  // namespace

std::unique_ptr<ProcessCommunicator> ProcessCommunicator::of_world(std::shared_ptr<ProgressEngine> progress,
                                                                   Queue& queue) {
  SharedWorld& world = progress->world();
  const int rank = progress->rank();
  std::vector<int> all;
  for (int i = 0; i < world.size(); ++i) all.push_back(i);
  auto group = std::make_shared<const Group>(world, SharedWorld::kWorldGroup, "world", std::move(all));
  return std::make_unique<ProcessCommunicator>(std::move(progress), std::move(group), rank, queue);
}

ProcessCommunicator::ProcessCommunicator(std::shared_ptr<ProgressEngine> progress, std::shared_ptr<const Group> group,
                                         int rank, Queue& queue)
    : CheckedCommunicator(queue, group->size()),
      progress_(std::move(progress)),
      group_(std::move(group)),
      rank_(rank),
      line_(progress_->open(group_, rank)) {}

ProcessCommunicator::~ProcessCommunicator() { progress_->close(line_); }

Work ProcessCommunicator::batch(std::span<const P2p> transfers) {
  std::vector<std::shared_ptr<PointToPoint>> messages;
  for (const P2p& transfer : transfers) {
    require_message(transfer);
    messages.push_back(std::make_shared<PointToPoint>(group_, rank_, transfer));
  }
  if (messages.empty()) return {};
  Work work(std::make_shared<ShmWork>(progress_,
                                      std::vector<std::shared_ptr<const Operation>>(messages.begin(), messages.end())));
  queue().enqueue([progress = progress_, messages] { progress->arrive(messages); });
  return work;
}

std::unique_ptr<Communicator> ProcessCommunicator::split(int colour, int key, std::string name) {
  const SplitRequest request{colour, key, progress_->world().claim_group()};
  const at::Tensor in = bytes(sizeof request), out = bytes(sizeof request * size());
  std::memcpy(in.mutable_data_ptr(), &request, sizeof request);
  issue({.kind = CallKind::Split, .chunk = sizeof request}, in, out).wait_host();
  std::vector<SplitRequest> requests(size());
  std::memcpy(requests.data(), out.const_data_ptr(), sizeof request * size());
  const std::vector<int> ranks = members_of_colour(requests, rank_);
  const int num_users = ranks[0] == rank_ ? static_cast<int>(ranks.size()) : 0;
  progress_->world().settle_group(request.area, num_users);
  std::vector<int> world_ranks;
  for (int rank : ranks) world_ranks.push_back(group_->world_ranks[rank]);
  const int place = static_cast<int>(std::ranges::find(ranks, rank_) - ranks.begin());
  auto group = std::make_shared<const Group>(progress_->world(), requests[ranks[0]].area, std::move(name),
                                             std::move(world_ranks));
  return std::make_unique<ProcessCommunicator>(progress_, std::move(group), place, queue());
}

void ProcessCommunicator::abort(const std::string& why) { progress_->world().fail({world_rank(), world_rank(), why}); }

Work ProcessCommunicator::issue(const Call& call, const at::Tensor& in, const at::Tensor& out) {
  auto collective = std::make_shared<Collective>(group_, rank_, next_number_++, call);
  collective->attach(in, out);
  Work work(std::make_shared<ShmWork>(progress_, std::vector<std::shared_ptr<const Operation>>{collective}));
  queue().enqueue([progress = progress_, line = line_, collective] { progress->arrive(line, collective); });
  return work;
}

void ProcessCommunicator::refuse(const std::string& op, const std::string& why) const {
  progress_->world().fail({world_rank(), world_rank(), why});
  progress_->world().raise(op, 0);
}

}  // namespace braid::comm::shm
