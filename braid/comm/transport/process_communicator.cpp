// Issues a rank's calls: messages, numbered collectives, groups.
#include "braid/comm/transport/process_communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/transport/transport_channel.h"

namespace braid::comm::transport {
namespace {

// A rank's contribution to a split. The first rank of the new group gives the group its number.
struct SplitRequest {
  int32_t colour, key;
  int64_t claimed;
};

// Returns the ranks of the old group that have rank `me`'s colour, in the order of the new group.
std::vector<int> members_of_colour(const std::vector<SplitRequest>& requests, int me) {
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(requests.size()); ++rank) {
    if (requests[rank].colour == requests[me].colour) ranks.push_back(rank);
  }
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return requests[rank].key; });
  return ranks;
}

at::Tensor bytes_of(size_t count) { return at::empty({static_cast<int64_t>(count)}, at::kByte); }

std::byte* memory_of(const P2p& transfer) {
  const at::Tensor& tensor = transfer.tensor;
  const bool sends = transfer.kind == P2p::Kind::Send;
  return static_cast<std::byte*>(sends ? const_cast<void*>(tensor.const_data_ptr()) : tensor.mutable_data_ptr());
}

// One side of a message of batch().
class PointToPoint final : public Operation, public std::enable_shared_from_this<PointToPoint>, private Message::Owner {
 public:
  // REQUIRES: `table` outlives this.
  PointToPoint(std::shared_ptr<const Group> group, const P2p& transfer, const Call& call, MatchTable& table)
      : group_(std::move(group)),
        peer_(transfer.peer),
        table_(table),
        tensor_(transfer.tensor),
        message_{.side = transfer.kind == P2p::Kind::Send ? Message::Side::Send : Message::Side::Receive,
                 .route = {group_->id, group_->world_ranks[peer_], Route::Kind::Batch, transfer.tag},
                 .call = call,
                 .group = group_->name,
                 .data = memory_of(transfer),
                 .bytes = static_cast<int64_t>(tensor_.nbytes()),
                 .owner = this} {}

  void issue() {
    issued_ = true;
    table_.add(MessagePtr(shared_from_this(), &message_));
  }

  std::string label() const override { return transfer_label(message_.call, group_->rank, group_->name); }
  std::optional<Call> last_call_of(int world_rank) const override {
    return table_.last_call_of(group_->id, world_rank);
  }
  std::vector<std::string> calls() const override { return group_->log->lines(); }

  Stall stall() const override {
    Stall stall{label(), {}, issued_ && table_.lost(message_) ? message_.route.peer : -1};
    if (!issued_) stall.missing.push_back(group_->world_rank());
    if (!message_.matched && !done()) stall.missing.push_back(message_.route.peer);
    if (message_.matched && !done()) stall.unfinished = message_.route.peer;
    return stall;
  }

 private:
  void message_done(const Message&) override {
    tensor_.reset();
    finish();
    table_.transport().notify();
  }

  const std::shared_ptr<const Group> group_;
  const int peer_;  // in the group
  MatchTable& table_;
  at::Tensor tensor_;
  Message message_;
  std::atomic<bool> issued_{false};
};

class World final : public ProcessCommunicator {
 public:
  World(std::shared_ptr<ProgressEngine> engine, std::shared_ptr<const Group> group, Queue& queue)
      : ProcessCommunicator(engine, std::move(group), queue), engine_(std::move(engine)) {}
  ~World() override { engine_->leave(); }

 private:
  const std::shared_ptr<ProgressEngine> engine_;
};

}  // namespace

std::unique_ptr<Communicator> ProcessCommunicator::of_world(std::unique_ptr<Transport> transport,
                                                            const RankOptions& options, Queue& queue) {
  Group group{.id = transport->world_group(),
              .name = "world",
              .world_ranks = {},
              .rank = options.rank,
              .nodes = options.node_of_rank};
  group.world_ranks.resize(options.size);
  std::iota(group.world_ranks.begin(), group.world_ranks.end(), 0);
  const Call sum{.kind = CallKind::AllReduce, .op = ReduceOp::Sum, .type = at::kFloat};
  const bool measures = options.sums == ReductionOrder::Measured && options.size > 1 && transport->has_own_sum(sum);
  const auto engine = std::make_shared<ProgressEngine>(std::move(transport), options);
  auto world = std::make_unique<World>(engine, std::make_shared<const Group>(std::move(group)), queue);
  if (measures) measure_own_sums(*world, engine->own_sums());
  return world;
}

ProcessCommunicator::ProcessCommunicator(std::shared_ptr<ProgressEngine> engine, std::shared_ptr<const Group> group,
                                         Queue& queue)
    : CheckedCommunicator(queue, group->size()),
      engine_(std::move(engine)),
      group_(std::move(group)),
      collectives_(engine_->open(group_)) {}

Work ProcessCommunicator::batch(std::span<const P2p> transfers) {
  std::vector<std::shared_ptr<PointToPoint>> messages;
  for (const P2p& transfer : transfers) {
    require_message(transfer);
    const Call call = numbered(transfer);
    group_->log->add(call);
    messages.push_back(std::make_shared<PointToPoint>(group_, transfer, call, engine_->table()));
  }
  end_batch();
  if (messages.empty()) return {};
  Work work(std::make_shared<WaitedWork>(engine_, WaitedWork::Parts(messages.begin(), messages.end())));
  queue().enqueue([engine = engine_, messages] {
    for (const auto& message : messages) message->issue();
  });
  return work;
}

std::unique_ptr<Communicator> ProcessCommunicator::split(int colour, int key, std::string name) {
  return std::make_unique<ProcessCommunicator>(engine_, split_group(colour, key, std::move(name)), queue());
}

std::vector<std::unique_ptr<Channel>> ProcessCommunicator::make_channels(const std::vector<int>& numbers,
                                                                         int num_endpoints) {
  const at::Tensor ranks = at::full({num_endpoints}, -1.0, at::kDouble);
  const std::span<double> rank_of_number(ranks.mutable_data_ptr<double>(), static_cast<size_t>(num_endpoints));
  for (const int number : numbers) rank_of_number[static_cast<size_t>(number)] = rank();
  all_reduce(ranks, ReduceOp::Max).wait_host();
  const std::vector<int> rank_of(rank_of_number.begin(), rank_of_number.end());
  return make_transport_channels(engine_, split_group(0, rank(), cat("channel of ", name())), rank_of);
}

std::shared_ptr<const Group> ProcessCommunicator::split_group(int colour, int key, std::string name) {
  Transport& transport = engine_->transport();
  const SplitRequest request{colour, key, transport.claim_group()};
  const at::Tensor in = bytes_of(sizeof request), out = bytes_of(sizeof request * size());
  std::memcpy(in.mutable_data_ptr(), &request, sizeof request);
  issue({.kind = CallKind::Split, .chunk = sizeof request}, in, out).wait_host();
  std::vector<SplitRequest> requests(size());
  std::memcpy(requests.data(), out.const_data_ptr(), sizeof request * size());
  const std::vector<int> ranks = members_of_colour(requests, rank());
  auto group =
      std::make_shared<Group>(Group{.id = requests[ranks[0]].claimed, .name = std::move(name), .world_ranks = {}});
  group->lease = transport.join_group(request.claimed, group->id, static_cast<int>(ranks.size()));
  for (const int rank : ranks) {
    group->world_ranks.push_back(group_->world_ranks[rank]);
    if (!group_->nodes.empty()) group->nodes.push_back(group_->nodes[rank]);
  }
  group->rank = static_cast<int>(std::ranges::find(ranks, rank()) - ranks.begin());
  return group;
}

Work ProcessCommunicator::issue(const Call& call, const at::Tensor& in, const at::Tensor& out) {
  const Call own = numbered(call);
  group_->log->add(own);
  auto collective = std::make_shared<Collective>(collectives_, own, in, out);
  Work work(std::make_shared<WaitedWork>(engine_, WaitedWork::Parts{collective}));
  queue().enqueue([engine = engine_, queue = collectives_, collective] { queue->add(collective); });
  return work;
}

void ProcessCommunicator::refuse(const std::string& op, const std::string& why) const {
  engine_->fail(why);
  engine_->raise(op, 0, group_->log->lines());
}

}  // namespace braid::comm::transport
