// Numbers and issues a rank's calls, and implements the Work and the channels that they return.
#include "braid/comm/local/thread_communicator.h"

#include <exception>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/channel_hub.h"

namespace braid::comm::local {
namespace {

// A rank's part of some operations.
class LocalWork final : public Work::State, public std::enable_shared_from_this<LocalWork> {
 public:
  struct Part {
    std::shared_ptr<Operation> operation;
    int party;
  };

  explicit LocalWork(std::vector<Part> parts) : parts_(std::move(parts)) {}

  void order_before(Queue& queue) override {
    if (dynamic_cast<HostQueue*>(&queue)) return wait_host();
    // A failure has already failed the world, so the rank throws it at its next wait_host().
    queue.enqueue([self = shared_from_this(), task = queued(queue), &queue] {
      try {
        self->wait(&queue);
      } catch (const CommError&) {
      }
    });
  }

  void wait_host() override { wait(nullptr); }

  bool done() const override {
    for (const Part& part : parts_) {
      if (!part.operation->poll(part.party)) return false;
    }
    return true;
  }

  void arrive() {
    for (const Part& part : parts_) part.operation->arrive(part.party);
  }

  // Registers a task of `queue` with the world until the result is destroyed.
  std::shared_ptr<void> queued(const Queue& queue) const {
    const Part& part = parts_.front();
    return part.operation->world_state().queued(part.operation->world_rank(part.party), queue);
  }

 private:
  void wait(const Queue* on) {
    for (const Part& part : parts_) part.operation->wait(part.party, issued_, on);
  }

  const std::vector<Part> parts_;
  const double issued_ = now_seconds();
};

Work publish(Queue& queue, std::vector<LocalWork::Part> parts) {
  auto work = std::make_shared<LocalWork>(std::move(parts));
  if (dynamic_cast<HostQueue*>(&queue)) {
    work->arrive();
  } else {
    queue.enqueue([work, task = work->queued(queue)] { work->arrive(); });
  }
  return Work(work);
}

// An endpoint of a rank. A failure of the world closes it, which wakes threads that wait.
class RankChannel final : public Channel {
 public:
  RankChannel(std::unique_ptr<Channel> channel, ThreadCommunicator& communicator, std::shared_ptr<Group> group)
      : channel_(std::move(channel)),
        world_rank_(group->members().world_ranks[static_cast<size_t>(communicator.rank())]),
        group_(std::move(group)),
        closes_it_(world().on_failure([this](const Failure&) { channel_->close(); })) {}

  ~RankChannel() override {
    if (std::uncaught_exceptions() > exceptions_before_) world().fail({world_rank_, world_rank_, kEndsByException});
  }

  int endpoint() const override { return channel_->endpoint(); }
  int num_endpoints() const override { return channel_->num_endpoints(); }
  Delivery send(int peer, int tag, ChannelMessage message) override {
    const Delivery delivery = channel_->send(peer, tag, std::move(message));
    if (delivery == Delivery::PeerClosed) throw_if_failed();
    return delivery;
  }
  ChannelEvent recv_any(int tag, Time deadline) override {
    ChannelEvent event = channel_->recv_any(tag, deadline);
    if (event.kind == ChannelEvent::Kind::Closed) throw_if_failed();
    return event;
  }
  void close() override { channel_->close(); }

 private:
  WorldState& world() const { return *group_->members().world_state; }
  void throw_if_failed() const {
    std::optional<Failure> failure;
    world().on_failure([&](const Failure& first) { failure = first; });
    if (failure) throw CommError({cat("a message at endpoint ", endpoint()), failure->rank, 0, failure->why});
  }

  const int exceptions_before_ = std::uncaught_exceptions();
  const std::unique_ptr<Channel> channel_;
  const int world_rank_;
  const std::shared_ptr<Group> group_;
  const std::shared_ptr<void> closes_it_;  // last member, because the call uses the others
};

}  // namespace

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<Group> group, int rank, Queue& queue)
    : CheckedCommunicator(queue, group->members().size()), group_(std::move(group)), rank_(rank) {}

Work ThreadCommunicator::batch(std::span<const P2p> transfers) {
  std::vector<LocalWork::Part> parts;
  for (const P2p& transfer : transfers) {
    require_message(transfer);
    Group::Posted posted = group_->post(rank_, numbered(transfer), transfer.tensor);
    parts.push_back({posted.transfer, posted.party});
  }
  end_batch();
  return parts.empty() ? Work() : publish(queue(), std::move(parts));
}

std::unique_ptr<Communicator> ThreadCommunicator::split(int colour, int key, std::string name) {
  auto call = std::static_pointer_cast<SplitCall>(group_->join(rank_, numbered({.kind = CallKind::Split})));
  call->request(rank_, {colour, key, std::move(name)});
  call->arrive(rank_);
  call->wait(rank_, now_seconds());
  const SplitCall::Place& place = call->place(rank_);
  return std::make_unique<ThreadCommunicator>(place.group, place.rank, queue());
}

std::shared_ptr<void> ThreadCommunicator::share(std::shared_ptr<void> object) {
  const auto call = std::static_pointer_cast<ShareCall>(group_->join(rank_, numbered({.kind = CallKind::Share})));
  call->offer(rank_, std::move(object));
  call->arrive(rank_);
  call->wait(rank_, now_seconds());
  return call->object();
}

std::vector<std::unique_ptr<Channel>> ThreadCommunicator::make_channels(const std::vector<int>& numbers,
                                                                        int num_endpoints) {
  const auto hub =
      std::static_pointer_cast<ChannelHub>(share(rank_ == 0 ? std::make_shared<ChannelHub>(num_endpoints) : nullptr));
  std::vector<std::unique_ptr<Channel>> channels;
  for (const int number : numbers)
    channels.push_back(std::make_unique<RankChannel>(hub->endpoint(number), *this, group_));
  barrier().wait_host();
  hub->close_untaken();
  return channels;
}

void ThreadCommunicator::abort(const std::string& why) {
  int world_rank = group_->members().world_ranks[rank_];
  group_->members().world_state->fail({world_rank, world_rank, why});
}

Work ThreadCommunicator::issue(const Call& call, const at::Tensor& in, const at::Tensor& out) {
  std::shared_ptr<Collective> collective = group_->join(rank_, numbered(call));
  collective->attach(rank_, in, out);
  return publish(queue(), {{std::move(collective), rank_}});
}

void ThreadCommunicator::refuse(const std::string& op, const std::string& why) const { group_->refuse(rank_, op, why); }

}  // namespace braid::comm::local
