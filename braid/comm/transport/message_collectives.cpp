// A round, and the order in which rounds start.
#include "braid/comm/transport/message_collectives.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>

#include "braid/base/errors.h"

namespace braid::comm::transport {
namespace {

constexpr int64_t kRoundBytes = 4 << 20;      // of a member's tensor
constexpr int64_t kInFlightBytes = 16 << 20;  // limit of scratch; at least one round is in flight
constexpr int64_t kKeptBytes = 256 << 10;     // smaller scratch is not worth keeping
constexpr int64_t kWholeBytes = 64 << 10;     // received by a rank: up to here, one exchange is faster than two

bool is_cut_in_chunks(CallKind kind) {
  return kind == CallKind::ReduceScatter || kind == CallKind::AllToAll || kind == CallKind::AllGather;
}

// Bytes of scratch for what one member sends another.
int64_t input_bytes(const Collective& collective) {
  if (!collective.combines()) return 0;
  const int64_t n = collective.group().size(), stretch = collective.stretch_bytes();
  const int64_t bytes = collective.by_shares() ? (stretch + n - 1) / n + Collective::kCacheLine : stretch;
  return (bytes + Collective::kCacheLine - 1) / Collective::kCacheLine * Collective::kCacheLine;
}

int64_t scratch_bytes(const Collective& collective) { return input_bytes(collective) * collective.group().size(); }

}  // namespace

class MessageCollectives::Round final : public std::enable_shared_from_this<Round>, private Message::Owner {
 public:
  // `done` is the last thing that the round calls. `tag` is the same on all members.
  Round(std::shared_ptr<MessageCollectives> queue, EntryPtr entry, int64_t number, at::Tensor scratch, int tag)
      : queue_(std::move(queue)),
        entry_(std::move(entry)),
        collective_(*entry_->collective),
        number_(number),
        stretch_(collective_.stretch(number)),
        scratch_(std::move(scratch)),
        tag_(tag) {
    make_first();
    if (collective_.by_shares()) make_second();
  }

  void start() { post(messages_[0]); }

  const at::Tensor& scratch() const { return scratch_; }

  void report(Stall& stall) const {
    if (stall.missing.empty()) {
      for (const Message& message : messages_[0]) {
        if (message.side == Message::Side::Receive && !message.matched) stall.missing.push_back(message.route.peer);
      }
    }
    for (const auto& line : messages_) {
      for (const Message& message : line) {
        if (stall.lost < 0 && queue_->table_.lost(message)) stall.lost = message.route.peer;
        const bool receives = message.side == Message::Side::Receive && message.posted && !message.done;
        if (stall.unfinished < 0 && receives) stall.unfinished = message.route.peer;
      }
    }
  }

 private:
  using Bytes = Collective::Bytes;
  using Messages = std::deque<Message>;  // their addresses stay

  const Group& group() const { return collective_.group(); }

  // Receives come first, so that arriving messages find them.
  template <class Receives, class Sends>
  void make(Messages& messages, Route::Line line, const Receives& receives, const Sends& sends) {
    const int n = group().size();
    const auto add = [&](Message::Side side, int member, const Bytes& bytes) {
      const Route route{group().id, group().world_ranks[member], line, tag_};
      messages.emplace_back(side, route, collective_.call(), bytes.data, bytes.count,
                            static_cast<Message::Owner*>(this));
    };
    for (int step = 1; step < n; ++step) {
      const int member = (group().rank + step) % n;
      add(Message::Side::Receive, member, receives(member));
    }
    for (int step = 1; step < n; ++step) {
      const int member = (group().rank + step) % n;
      add(Message::Side::Send, member, sends(member));
    }
  }

  void make_first() {
    const auto receives = [this](int member) -> Bytes {
      const Bytes bytes = collective_.received_first(stretch_, member);
      return collective_.combines() ? Bytes{input_of(member), bytes.count} : bytes;
    };
    make(messages_[0], Route::Line::First, receives,
         [this](int member) { return collective_.sent_first(stretch_, member); });
  }

  void make_second() {
    make(
        messages_[1], Route::Line::Second, [this](int member) { return collective_.result(stretch_, member); },
        [this](int) { return collective_.result(stretch_, group().rank); });
  }

  std::byte* input_of(int member) const {
    return static_cast<std::byte*>(scratch_.mutable_data_ptr()) + member * input_bytes(collective_);
  }

  void post(Messages& messages) {
    open_ += static_cast<int>(messages.size());
    awaited_ = 1 + static_cast<int>(
                       std::ranges::count_if(messages, [this](const auto& message) { return awaits(message.side); }));
    const auto self = shared_from_this();
    for (Message& message : messages) queue_->table_.add(MessagePtr(self, &message));
    if (--awaited_ == 0) exchanged();
  }

  void message_done(const Message& message) override {
    if (awaits(message.side) && --awaited_ == 0) exchanged();
    close_one();
  }

  // A sum in place overwrites what the rank has sent.
  bool awaits(Message::Side side) const {
    const bool sends_all = collective_.call().kind == CallKind::AllReduce && !collective_.by_shares();
    return side == Message::Side::Receive || sends_all;
  }

  void exchanged() {
    if (second_) return close_one();
    if (collective_.by_transport()) {
      return queue_->sum(collective_.out(), [self = shared_from_this()] { self->close_one(); });
    }
    if (collective_.combines()) {
      std::vector<const void*> inputs;
      for (int member = 0; member < group().size(); ++member) inputs.push_back(input_of(member));
      collective_.combine(stretch_, inputs);
    } else {
      collective_.copy_own(stretch_);
    }
    if (!collective_.by_shares()) return close_one();
    second_ = true;
    post(messages_[1]);
  }

  void close_one() {
    if (--open_ == 0) queue_->round_done(entry_, number_);
  }

  const std::shared_ptr<MessageCollectives> queue_;
  const EntryPtr entry_;
  const Collective& collective_;
  const int64_t number_;
  const Collective::Stretch stretch_;
  const at::Tensor scratch_;
  const int tag_;
  Messages messages_[2];  // lines First and Second
  bool second_ = false;
  std::atomic<int> awaited_{0};  // messages of the line that the next step waits for, and one until all are posted
  std::atomic<int> open_{1};     // messages that are not done, and one until nothing else is to be done
};

MessageCollectives::MessageCollectives(std::shared_ptr<const Group> group, MatchTable& table)
    : CollectiveQueue(std::move(group)), table_(table) {}

MessageCollectives::~MessageCollectives() = default;

// Of two ranks, one exchange of everything moves as many bytes as two exchanges of shares.
CollectiveQueue::Cut MessageCollectives::cut(const Call& call) const {
  const int n = group()->size();
  const auto element_bytes = static_cast<int64_t>(c10::elementSize(call.type));
  const int64_t bytes = call.chunk * element_bytes;
  if (call.kind == CallKind::AllReduce && table_.transport().sums(call, bytes, n)) {
    return {Sum::Transport, std::max<int64_t>(call.chunk, 1)};
  }
  const int64_t most = kRoundBytes / (is_cut_in_chunks(call.kind) ? n : 1) / element_bytes;
  return {n == 2 || bytes * (n - 1) <= kWholeBytes ? Sum::Whole : Sum::Shares,
          std::clamp<int64_t>(call.chunk, 1, std::max<int64_t>(most, 1))};
}

void MessageCollectives::add(std::shared_ptr<Collective> collective) {
  {
    const std::scoped_lock hold(mutex_);
    if (stopped_) return;
    entries_.push_back(std::make_shared<Entry>(Entry{.collective = std::move(collective)}));
  }
  advance();
}

void MessageCollectives::start_all() {
  {
    const std::scoped_lock hold(mutex_);
    start_all_ = true;
  }
  advance();
  std::unique_lock hold(mutex_);
  advanced_.wait(hold, [this] { return !advancing_; });  // another thread may be starting rounds
}

bool MessageCollectives::idle() const {
  const std::scoped_lock hold(mutex_);
  return std::ranges::all_of(entries_, [this](const EntryPtr& entry) { return stall_of(*entry).lost >= 0; });
}

bool MessageCollectives::needed_by_peers() const {
  const std::scoped_lock hold(mutex_);
  return own_ != nullptr;
}

void MessageCollectives::stop() {
  OwnAllReduce* own = nullptr;
  {
    const std::scoped_lock hold(mutex_);
    stopped_ = true;
    own = own_.get();
  }
  if (own) own->stop();
  std::deque<EntryPtr> dropped;  // entries, rounds and this keep each other alive
  const std::scoped_lock hold(mutex_);
  for (const EntryPtr& entry : entries_) entry->rounds.clear();
  dropped.swap(entries_);
}

Stall MessageCollectives::stall(const Collective& collective) const {
  const std::scoped_lock hold(mutex_);
  if (collective.done() || entries_.empty()) {
    Stall stall{.label = collective.label()};
    if (stopped_ && !collective.done()) stall.lost = another_rank();
    return stall;
  }
  const auto lost =
      std::ranges::find_if(entries_, [this](const EntryPtr& entry) { return stall_of(*entry).lost >= 0; });
  return stall_of(lost != entries_.end() ? **lost : *entries_.front());
}

// REQUIRES: mutex_ is held.
Stall MessageCollectives::stall_of(const Entry& entry) const {
  Stall stall{.label = entry.collective->label()};
  if (stopped_) stall.lost = another_rank();
  for (const auto& [number, round] : entry.rounds) round->report(stall);
  std::ranges::sort(stall.missing);
  return stall;
}

int MessageCollectives::another_rank() const {
  return group()->world_ranks[group()->rank == 0 ? group()->size() - 1 : 0];
}

// One thread at a time starts rounds, so that their messages are posted in order. It also starts the rounds that other
// threads come with meanwhile.
void MessageCollectives::advance() {
  std::unique_lock hold(mutex_);
  if (advancing_) return;
  advancing_ = true;
  while (const auto round = next_round()) {
    hold.unlock();
    round->start();
    hold.lock();
  }
  advancing_ = false;
  advanced_.notify_all();
}

// REQUIRES: mutex_ is held.
std::shared_ptr<MessageCollectives::Round> MessageCollectives::next_round() {
  if (stopped_) return nullptr;
  const auto next = std::ranges::find_if(
      entries_, [](const EntryPtr& entry) { return entry->num_started < entry->collective->num_rounds(); });
  if (next == entries_.end() || (in_flight_bytes_ >= kInFlightBytes && !start_all_)) return nullptr;
  const EntryPtr& entry = *next;
  const int64_t number = entry->num_started++, bytes = scratch_bytes(*entry->collective);
  in_flight_bytes_ += bytes;
  const int tag = std::exchange(next_tag_, (next_tag_ + 1) % std::numeric_limits<int>::max());
  return entry->rounds[number] = std::make_shared<Round>(shared_from_this(), entry, number, scratch(bytes), tag);
}

void MessageCollectives::round_done(const EntryPtr& entry, int64_t number) {
  std::unique_lock hold(mutex_);
  const auto found = entry->rounds.find(number);
  if (found == entry->rounds.end()) return;  // stopped
  const at::Tensor used = found->second->scratch();
  entry->rounds.erase(found);
  in_flight_bytes_ -= scratch_bytes(*entry->collective);
  if (used.defined() && static_cast<int64_t>(used.nbytes()) >= kKeptBytes) scratches_.push_back(used);
  const bool all = ++entry->num_done == entry->collective->num_rounds();
  if (all) {
    std::erase(entries_, entry);
    entry->collective->complete();
  }
  hold.unlock();
  if (all) table_.transport().notify();
  advance();
}

// May run on a thread that moves the messages of another group, so it does not throw.
void MessageCollectives::sum(const at::Tensor& tensor, std::function<void()> done) {
  const std::scoped_lock hold(mutex_);
  if (stopped_) return;
  if (!own_) {
    own_ = table_.transport().own_all_reduce(group(), [this] {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
    });
  }
  if (!own_) {
    stopped_ = true;
    return;
  }
  own_->add(tensor, std::move(done));
}

// REQUIRES: mutex_ is held. Returns memory that was touched before if there is some: fresh pages cost as much as what
// is received into them.
at::Tensor MessageCollectives::scratch(int64_t bytes) {
  if (bytes == 0) return {};
  if (!scratches_.empty() && static_cast<int64_t>(scratches_.back().nbytes()) < bytes) scratches_.clear();
  if (scratches_.empty() || bytes < kKeptBytes) return at::empty({bytes}, at::kByte);
  at::Tensor taken = std::move(scratches_.back());
  scratches_.pop_back();
  return taken;
}

}  // namespace braid::comm::transport
