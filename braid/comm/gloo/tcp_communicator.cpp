// Numbers and issues a rank's calls; the Work that it hands back; groups made of requests; the world's end.
#include "braid/comm/gloo/tcp_communicator.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/waited_work.h"

namespace braid {
namespace {

using GlooWork = comm::WaitedWork<comm::gloo::ProgressEngine, comm::gloo::Operation>;

// What a rank says in a split. The first of the new group gives it its number.
struct SplitRequest {
  int32_t colour, key;
  int64_t group;
};

at::Tensor bytes_of(size_t count) { return at::empty({static_cast<int64_t>(count)}, at::kByte); }

// Whose end is the rank's.
class GlooWorld final : public comm::gloo::TcpCommunicator {
 public:
  GlooWorld(std::shared_ptr<comm::gloo::ProgressEngine> self, Queue& queue)
      : comm::gloo::TcpCommunicator(self, self->world(), queue), self_(std::move(self)) {}
  ~GlooWorld() override { self_->leave(); }

 private:
  const std::shared_ptr<comm::gloo::ProgressEngine> self_;
};

}  // namespace

std::unique_ptr<Communicator> make_gloo_world(const GlooOptions& options, Queue& queue) {
  return std::make_unique<GlooWorld>(std::make_shared<comm::gloo::ProgressEngine>(options), queue);
}

comm::gloo::TcpCommunicator::TcpCommunicator(std::shared_ptr<comm::gloo::ProgressEngine> self,
                                             std::shared_ptr<const comm::gloo::Group> group, Queue& queue)
    : comm::CheckedCommunicator(queue, group->size()),
      self_(std::move(self)),
      group_(std::move(group)),
      line_(self_->open(group_)) {}

Work comm::gloo::TcpCommunicator::batch(std::span<const P2p> transfers) {
  std::vector<std::shared_ptr<comm::gloo::PointToPoint>> messages;
  for (const P2p& transfer : transfers) {
    require_message(transfer);
    messages.push_back(std::make_shared<comm::gloo::PointToPoint>(group_, transfer, self_->news()));
  }
  if (messages.empty()) return {};
  Work work(std::make_shared<GlooWork>(
      self_, std::vector<std::shared_ptr<const comm::gloo::Operation>>(messages.begin(), messages.end())));
  queue().enqueue([self = self_, messages] {
    for (const auto& message : messages) message->start(self->post());
  });
  return work;
}

std::unique_ptr<Communicator> comm::gloo::TcpCommunicator::split(int colour, int key, std::string name) {
  const SplitRequest request{colour, key, self_->next_group_id()};
  const at::Tensor in = bytes_of(sizeof request), out = bytes_of(sizeof request * size());
  std::memcpy(in.mutable_data_ptr(), &request, sizeof request);
  issue({.kind = comm::CallKind::Split, .chunk = sizeof request}, in, out).wait_host();
  std::vector<SplitRequest> requests(size());
  std::memcpy(requests.data(), out.const_data_ptr(), sizeof request * size());
  const std::vector<int> ranks = comm::members_of_colour(requests, rank());
  auto group =
      std::make_shared<comm::gloo::Group>(comm::gloo::Group{.id = requests[ranks[0]].group, .name = std::move(name)});
  for (const int rank : ranks) group->world_ranks.push_back(group_->world_ranks[rank]);
  group->rank = static_cast<int>(std::ranges::find(ranks, rank()) - ranks.begin());
  return std::make_unique<comm::gloo::TcpCommunicator>(self_, std::move(group), queue());
}

void comm::gloo::TcpCommunicator::abort(const std::string& why) { self_->fail(why); }

Work comm::gloo::TcpCommunicator::issue(const comm::Call& call, const at::Tensor& in, const at::Tensor& out) {
  auto collective = std::make_shared<comm::gloo::Collective>(line_, next_number_++, call);
  collective->attach(in, out);
  Work work(std::make_shared<GlooWork>(self_, std::vector<std::shared_ptr<const comm::gloo::Operation>>{collective}));
  queue().enqueue([self = self_, line = line_, collective] { line->add(collective); });
  return work;
}

void comm::gloo::TcpCommunicator::refuse(const std::string& op, const std::string& why) const {
  self_->fail(why);
  self_->raise(op, 0);
}

}  // namespace braid
