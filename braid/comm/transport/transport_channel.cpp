// A message of a channel travels as a preamble of fixed size, its numbers, and its tensors:
//
//   Preamble | header, then type and sizes of each tensor | bytes of tensor 0 | bytes of tensor 1 | ...
//
// Each rank always has a receive for the next preamble of each peer. What arrives goes into the mailboxes of a
// ChannelHub, in which endpoints of other ranks are represented by this rank.
#include "braid/comm/transport/transport_channel.h"

#include <ATen/ops/empty.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/channel_hub.h"

namespace braid::comm::transport {
namespace {

struct Preamble {
  int32_t from = 0, to = 0, tag = 0;
  bool closes = false;  // `from` has closed; nothing follows
  int64_t num_fields = 0, num_tensors = 0, num_numbers = 0;
};

// One part of a message, which keeps the memory of its bytes alive.
template <class Owner>
struct Part {
  std::shared_ptr<Owner> owner;
  Message message;
};

template <class Owner>
void add_part(MatchTable& table, const std::shared_ptr<Owner>& owner, Message::Side side, const Route& route,
              void* data, size_t bytes) {
  const auto count = static_cast<int64_t>(bytes);
  const auto part = std::shared_ptr<Part<Owner>>(new Part<Owner>{owner,
                                                                 {.side = side,
                                                                  .route = route,
                                                                  .call = {.type = at::kByte, .chunk = count},
                                                                  .data = static_cast<std::byte*>(data),
                                                                  .bytes = count,
                                                                  .owner = owner.get()}});
  table.add(MessagePtr(part, &part->message));
}

class Outgoing final : public Message::Owner {
 public:
  Outgoing(int from, int to, int tag, ChannelMessage message)
      : preamble_{from, to, tag}, numbers_(std::move(message.header)), tensors_(std::move(message.tensors)) {
    preamble_.num_fields = static_cast<int64_t>(numbers_.size());
    preamble_.num_tensors = static_cast<int64_t>(tensors_.size());
    for (const at::Tensor& tensor : tensors_) {
      numbers_.insert(numbers_.end(), {static_cast<int64_t>(tensor.scalar_type()), tensor.dim()});
      numbers_.insert(numbers_.end(), tensor.sizes().begin(), tensor.sizes().end());
    }
    preamble_.num_numbers = static_cast<int64_t>(numbers_.size());
  }
  // The notice that `from` has closed.
  explicit Outgoing(int from) : preamble_{.from = from, .closes = true} {}

  static void send(const std::shared_ptr<Outgoing>& self, MatchTable& table, const Route& route) {
    const auto add = [&](const void* data, size_t bytes) {
      if (bytes > 0) add_part(table, self, Message::Side::Send, route, const_cast<void*>(data), bytes);
    };
    add(&self->preamble_, sizeof self->preamble_);
    add(self->numbers_.data(), self->numbers_.size() * sizeof(int64_t));
    for (const at::Tensor& tensor : self->tensors_) add(tensor.const_data_ptr(), tensor.nbytes());
  }

 private:
  void message_done(const Message&) override {}

  Preamble preamble_;
  std::vector<int64_t> numbers_;  // the header, then type, number of dimensions and sizes of each tensor
  const std::vector<at::Tensor> tensors_;
};

// All endpoints of one rank, and its links to the other ranks. Thread-safe.
class ChannelLinks {
 public:
  ChannelLinks(std::shared_ptr<ProgressEngine> engine, std::shared_ptr<const Group> group, std::vector<int> ranks)
      : engine_(std::move(engine)),
        group_(std::move(group)),
        rank_of_(std::move(ranks)),
        hub_(static_cast<int>(rank_of_.size())) {
    for (int number = 0; number < num_endpoints(); ++number) {
      remote_.push_back(is_here(number) ? nullptr : hub_.endpoint(number));
      if (rank_of(number) >= 0) continue;
      remote_closed_[static_cast<size_t>(number)] = true;
      remote_.back()->close();
    }
  }

  int num_endpoints() const { return static_cast<int>(rank_of_.size()); }
  int rank_of(int number) const { return rank_of_[static_cast<size_t>(number)]; }
  bool is_here(int number) const { return rank_of(number) == group_->rank; }
  ProgressEngine& engine() const { return *engine_; }
  std::unique_ptr<Channel> mailbox(int number) { return hub_.endpoint(number); }
  Channel& remote(int number) { return *remote_.at(static_cast<size_t>(number)); }
  Route route(int rank) const {
    return {group_->id, group_->world_ranks[static_cast<size_t>(rank)], Route::Kind::Channel, 0};
  }

  std::string label() const { return cat("a message of ", group_->name); }

  // Sends to an endpoint of another rank.
  Delivery send(int from, int to, int tag, ChannelMessage message) {
    if (remote_closed_[static_cast<size_t>(to)]) {
      if (engine_->options().failures->failure()) engine_->raise(label(), 0);
      return Delivery::PeerClosed;
    }
    issue(std::make_shared<Outgoing>(from, to, tag, std::move(message)), rank_of(to));
    return Delivery::Accepted;
  }
  void send_close(int from) {
    for (int rank = 0; rank < group_->size(); ++rank) {
      if (rank != group_->rank && !engine_->options().failures->failure())
        issue(std::make_shared<Outgoing>(from), rank);
    }
  }
  // Closes the endpoints of ranks that are lost. What they had sent lies in the mailboxes already.
  void close_lost() {
    if (!engine_->table().any_left()) return;
    for (int number = 0; number < num_endpoints(); ++number) {
      if (rank_of(number) < 0 || is_here(number)) continue;
      if (!engine_->table().gone(group_->world_ranks[static_cast<size_t>(rank_of(number))])) continue;
      if (!remote_closed_[static_cast<size_t>(number)].exchange(true)) remote(number).close();
    }
  }
  // The next message of an endpoint of another rank.
  void receive(const Preamble& preamble, ChannelMessage message) {
    if (preamble.closes) {
      remote_closed_[static_cast<size_t>(preamble.from)] = true;
      remote(preamble.from).close();
    } else {
      remote(preamble.from).send(preamble.to, preamble.tag, std::move(message));
    }
    engine_->transport().notify();
  }

 private:
  // The parts of a message follow one another.
  void issue(const std::shared_ptr<Outgoing>& message, int rank) {
    const std::scoped_lock hold(sending_);
    Outgoing::send(message, engine_->table(), route(rank));
  }

  const std::shared_ptr<ProgressEngine> engine_;
  const std::shared_ptr<const Group> group_;
  const std::vector<int> rank_of_;  // by endpoint
  local::ChannelHub hub_;
  std::vector<std::unique_ptr<Channel>> remote_;  // by endpoint: those of other ranks; null: of this rank
  std::vector<std::atomic<bool>> remote_closed_ = std::vector<std::atomic<bool>>(rank_of_.size());
  std::mutex sending_;
};

// Receives the messages of one peer, one after another. The receive that is posted keeps it alive.
class Incoming final : public Message::Owner, public std::enable_shared_from_this<Incoming> {
 public:
  Incoming(std::shared_ptr<ChannelLinks> links, int rank) : links_(std::move(links)), route_(links_->route(rank)) {}

  // Handles what has arrived and posts the next receives, until one of them has to be waited for. Then it is called
  // again by the thread that completes the last of them.
  void advance() {
    do {
      const std::vector<std::pair<void*, size_t>> wanted = handle();
      outstanding_ = wanted.size() + 1;  // 1: nobody else calls this while receives are being posted
      for (const auto& [data, bytes] : wanted) {
        add_part(links_->engine().table(), shared_from_this(), Message::Side::Receive, route_, data, bytes);
      }
    } while (outstanding_.fetch_sub(1) == 1);
  }

 private:
  enum class Stage { Begin, Preamble, Numbers, Tensors };

  void message_done(const Message&) override {
    if (outstanding_.fetch_sub(1) == 1) advance();
  }

  // Returns the memory of the next receives.
  std::vector<std::pair<void*, size_t>> handle() {
    if (stage_ == Stage::Preamble && !preamble_.closes) {
      stage_ = Stage::Numbers;
      numbers_.resize(static_cast<size_t>(preamble_.num_numbers));
      if (!numbers_.empty()) return {{numbers_.data(), numbers_.size() * sizeof(int64_t)}};
    }
    if (stage_ == Stage::Numbers) {
      stage_ = Stage::Tensors;
      return memory_of_tensors();
    }
    if (stage_ != Stage::Begin) links_->receive(preamble_, std::exchange(message_, {}));
    stage_ = Stage::Preamble;
    return {{&preamble_, sizeof preamble_}};
  }

  std::vector<std::pair<void*, size_t>> memory_of_tensors() {
    auto next = numbers_.begin() + preamble_.num_fields;
    message_.header.assign(numbers_.begin(), next);
    std::vector<std::pair<void*, size_t>> memory;
    for (int64_t i = 0; i < preamble_.num_tensors; ++i) {
      const auto type = static_cast<at::ScalarType>(*next++);
      const auto dimensions = static_cast<size_t>(*next++);
      const at::Tensor tensor = at::empty(at::IntArrayRef(&*next, dimensions), type);
      next += static_cast<std::ptrdiff_t>(dimensions);
      if (tensor.nbytes() > 0) memory.emplace_back(tensor.mutable_data_ptr(), tensor.nbytes());
      message_.tensors.push_back(tensor);
    }
    return memory;
  }

  const std::shared_ptr<ChannelLinks> links_;
  const Route route_;
  std::atomic<size_t> outstanding_{0};  // receives that are not done
  Stage stage_ = Stage::Begin;
  Preamble preamble_;
  std::vector<int64_t> numbers_;
  ChannelMessage message_;
};

class TransportChannel final : public Channel {
 public:
  TransportChannel(std::shared_ptr<ChannelLinks> links, int number)
      : links_(std::move(links)), mailbox_(links_->mailbox(number)), maker_(std::this_thread::get_id()) {}
  ~TransportChannel() override {
    if (std::uncaught_exceptions() > exceptions_before_) links_->engine().fail(kEndsByException);
    close();
  }

  int endpoint() const override { return mailbox_->endpoint(); }
  int num_endpoints() const override { return links_->num_endpoints(); }

  Delivery send(int peer, int tag, ChannelMessage message) override {
    check(0 <= peer && peer < num_endpoints(), "an endpoint of the channel");
    for (const at::Tensor& tensor : message.tensors) check(!tensor.is_view(), "a message's tensors are no views");
    if (closed_) return Delivery::Accepted;
    if (!links_->is_here(peer)) return links_->send(endpoint(), peer, tag, std::move(message));
    const Delivery delivery = mailbox_->send(peer, tag, std::move(message));
    links_->engine().transport().notify();
    return delivery;
  }

  // The rank's own thread records that it waits.
  ChannelEvent recv_any(int tag, Time deadline) override {
    ProgressEngine& engine = links_->engine();
    Transport& transport = engine.transport();
    const bool own_thread = std::this_thread::get_id() == maker_;
    const auto label = [&] { return links_->label(); };
    ReportedWait reported(own_thread ? engine.options().activity : nullptr);
    const double begin = now_seconds();
    for (;;) {
      const uint64_t seen = transport.events();
      transport.advance();
      if (engine.options().failures->failure()) engine.raise(label(), now_seconds() - begin);
      links_->close_lost();
      ChannelEvent event = mailbox_->recv_any(tag, Time::min());
      const auto left = deadline - std::chrono::steady_clock::now();
      if (event.kind != ChannelEvent::Kind::TimedOut || left <= Time::duration::zero()) return event;
      transport.sleep(seen, reported.nap(std::chrono::duration<double>(left).count(), label));
    }
  }

  void close() override {
    if (closed_.exchange(true)) return;
    mailbox_->close();
    links_->send_close(endpoint());
    links_->engine().transport().notify();
  }

 private:
  const std::shared_ptr<ChannelLinks> links_;
  const std::unique_ptr<Channel> mailbox_;
  const std::thread::id maker_;
  const int exceptions_before_ = std::uncaught_exceptions();
  std::atomic<bool> closed_{false};
};

}  // namespace

std::vector<std::unique_ptr<Channel>> make_transport_channels(std::shared_ptr<ProgressEngine> engine,
                                                              std::shared_ptr<const Group> group,
                                                              const std::vector<int>& rank_of) {
  const auto links = std::make_shared<ChannelLinks>(std::move(engine), group, rank_of);
  std::vector<std::unique_ptr<Channel>> channels;
  for (int number = 0; number < links->num_endpoints(); ++number) {
    if (links->is_here(number)) channels.push_back(std::make_unique<TransportChannel>(links, number));
  }
  for (int rank = 0; rank < group->size(); ++rank) {
    if (rank != group->rank) std::make_shared<Incoming>(links, rank)->advance();
  }
  return channels;
}

}  // namespace braid::comm::transport
