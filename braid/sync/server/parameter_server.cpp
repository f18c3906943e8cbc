// The server handles one message at a time. After each it answers all workers that may read now.
#include "braid/sync/server/parameter_server.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid {
namespace {

constexpr double kForever = 1e8;  // seconds

Channel::Time after(double seconds) {
  if (seconds >= kForever) return Channel::kNoDeadline;
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<Channel::Time::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

ParameterServer::ParameterServer(const ServerOptions& options, sync::server::ServerShard& shard, Channel& channel)
    : options_(options),
      shard_(shard),
      channel_(channel),
      clocks_(options.num_workers, options.num_initial.value_or(options.num_workers)),
      workers_(static_cast<size_t>(options.num_workers)) {
  check(options.first_worker + options.num_workers <= channel.num_endpoints(), "every worker has an endpoint");
}

void ParameterServer::serve() {
  while (!clocks_.all_ended()) {
    const ChannelEvent event = channel_.recv_any(sync::server::kRequestTag, next_deadline());
    const comm::BegunAnswer begun(options_.activity);
    const int worker = event.peer - options_.first_worker;
    const bool is_worker = 0 <= worker && worker < clocks_.size();
    if (event.kind == ChannelEvent::Kind::Closed && event.peer == channel_.endpoint()) return;
    if (event.kind == ChannelEvent::Kind::TimedOut) give_up_on_silent();
    if (event.kind == ChannelEvent::Kind::Closed && is_worker) lose(worker);
    if (event.kind == ChannelEvent::Kind::Received && is_worker) handle(worker, event.message);
    close_rounds();
    answer_waiting();
  }
  channel_.close();
}

void ParameterServer::handle(int worker, const ChannelMessage& message) {
  report_.bytes_received += message.num_bytes();
  const auto request = sync::server::envelope_of(message);
  if (!request) {
    ++report_.num_damaged;
    return;
  }
  if (request->request() == sync::server::RequestKind::Join) return join(worker, request->session);
  if (request->session != at(worker).session) return;  // a message of an earlier session
  if (request->request() == sync::server::RequestKind::Leave || at(worker).left) {
    at(worker).left = true;
    end(worker);
    return answer(worker, sync::server::AnswerKind::Left);
  }
  if (failed_) return answer(worker, sync::server::AnswerKind::Failed, {.number = *failed_});
  if (clocks_.state(worker) != sync::server::WorkerClocks::State::Live)
    return answer(worker, sync::server::AnswerKind::Gone);
  dispatch(worker, *request, message);
}

void ParameterServer::dispatch(int worker, const sync::server::Envelope& request, const ChannelMessage& message) {
  if (request.request() == sync::server::RequestKind::Start) return start(worker, request);
  if (!at(worker).started) return;  // arrived before Start: the worker will send it again
  switch (request.request()) {
    case sync::server::RequestKind::Push:
      return receive_push(worker, request, message);
    case sync::server::RequestKind::Pull:
      return receive_pull(worker, request, message);
    case sync::server::RequestKind::Fetch:
      return fetch(worker, request);
    case sync::server::RequestKind::Store:
      return store(worker, request, message);
    case sync::server::RequestKind::Clock:
      return tell_clock(worker, request);
    default:
      ++report_.num_damaged;
  }
}

void ParameterServer::join(int worker, int64_t session) {
  Worker& known = at(worker);
  if (session < known.session) return;
  if (session > known.session) {
    const bool first_of_initial =
        known.session == 0 && clocks_.state(worker) == sync::server::WorkerClocks::State::Live;
    if (!first_of_initial) {
      lose(worker);
      clocks_.join(worker);
    }
    known = Worker{.session = session};
  }
  if (failed_) return answer(worker, sync::server::AnswerKind::Failed, {.number = *failed_});
  answer(worker, sync::server::AnswerKind::Joined, {.number = clocks_.clock(worker)});
}

void ParameterServer::start(int worker, const sync::server::Envelope& request) {
  Worker& known = at(worker);
  if (!known.started) {
    clocks_.move_ahead(worker, std::max(request.number, clocks_.clock(worker)));
    known.pushes = sync::server::SequenceBook<Push>(clocks_.clock(worker));
    known.started = true;
  }
  answer(worker, sync::server::AnswerKind::Started);
}

void ParameterServer::receive_push(int worker, const sync::server::Envelope& request, const ChannelMessage& message) {
  auto gradient = unpacked(message, sync::server::Envelope::kNumFields, RowContent::IndexAndValues, shard_.shape());
  if (!gradient || (shard_.shape().num_elements > 0 && !gradient->dense.defined())) {
    ++report_.num_damaged;
    return;
  }
  auto& pushes = at(worker).pushes;
  if (pushes.accept(request.number, {std::move(*gradient), request.a, sync::server::double_of(request.b)}) ==
      sync::server::Arrival::Repeated) {
    ++report_.num_repeated;
    return acknowledge(worker, request.number, -1);
  }
  int64_t sequence = pushes.next();
  while (auto push = pushes.pop()) {
    const int64_t staleness = take(worker, std::move(*push));
    acknowledge(worker, sequence++, staleness);
  }
}

void ParameterServer::acknowledge(int worker, int64_t sequence, int64_t staleness) {
  answer(worker, sync::server::AnswerKind::Pushed,
         {.number = sequence,
          .a = staleness,
          .b = options_.memory_bytes(),
          .c = static_cast<int64_t>(options_.request())});
}

// Applies or stores a push. Returns its staleness: the number of updates since the worker's pull.
int64_t ParameterServer::take(int worker, Push push) {
  const int64_t staleness = std::max<int64_t>(0, version_ - push.version);
  report_.staleness.add(staleness);
  const int64_t clock = clocks_.clock(worker);
  clocks_.tick(worker);
  if (options_.consistency == Consistency::Bsp) {
    rounds_[clock].emplace(worker, std::move(push));
    return staleness;
  }
  update({std::move(push.gradient)}, push.lr);
  return staleness;
}

void ParameterServer::update(const std::vector<KeyedTensors>& gradients, double lr) {
  fetched_.reset();
  shard_.apply(gradients, lr);
  report_.num_updates = ++version_;
}

// Applies the pushes of all finished clocks. A clock is finished when every live worker has ended it.
void ParameterServer::close_rounds() {
  while (!rounds_.empty() && rounds_.begin()->first < clocks_.slowest()) {
    const auto pushes = std::move(rounds_.begin()->second);
    rounds_.erase(rounds_.begin());
    std::vector<KeyedTensors> gradients;
    for (const auto& [worker, push] : pushes) gradients.push_back(push.gradient);
    update(gradients, pushes.begin()->second.lr);
  }
}

void ParameterServer::receive_pull(int worker, const sync::server::Envelope& request, const ChannelMessage& message) {
  auto rows = unpacked(message, sync::server::Envelope::kNumFields, RowContent::IndexOnly, shard_.shape());
  if (!rows) {
    ++report_.num_damaged;
    return;
  }
  auto& waiting = at(worker).waiting;
  if (waiting && waiting->number >= request.number) return;
  waiting = Pull{request.number, request.a, request.b != 0, std::move(rows->rows), after(options_.deadline_seconds)};
}

// Returns the clock that the slowest worker must have reached before the pull is answered.
int64_t ParameterServer::needed(const Pull& pull) const {
  switch (options_.consistency) {
    case Consistency::Bsp:
      return pull.clock;
    case Consistency::Ssp:
      return pull.clock - options_.staleness;
    case Consistency::Asp:
      return 0;
  }
  return 0;
}

// A worker always reads its own writes.
bool ParameterServer::may_read(int worker, const Pull& pull) const {
  return clocks_.clock(worker) >= pull.clock && clocks_.slowest() >= needed(pull);
}

void ParameterServer::answer_waiting() {
  for (int worker = 0; worker < clocks_.size(); ++worker) {
    auto& waiting = at(worker).waiting;
    if (!waiting || (!failed_ && !may_read(worker, *waiting))) continue;
    const Pull pull = *std::exchange(waiting, std::nullopt);
    if (failed_) {
      answer(worker, sync::server::AnswerKind::Failed, {.number = *failed_});
      continue;
    }
    ChannelMessage message = sync::server::message_of({static_cast<int64_t>(sync::server::AnswerKind::Pulled),
                                                       at(worker).session, pull.number, version_, clocks_.slowest()});
    KeyedTensors read;
    if (pull.wants_dense) read.dense = shard_.snapshot();
    for (size_t t = 0; t < pull.rows.size(); ++t) {
      const at::Tensor& index = pull.rows[t].index;
      read.rows.push_back({index, index.defined() ? shard_.rows(static_cast<int>(t), index) : at::Tensor()});
    }
    pack(read, RowContent::IndexAndValues, message);
    send(worker, std::move(message));
  }
}

void ParameterServer::end(int worker) {
  clocks_.end(worker);
  at(worker).waiting.reset();
}

void ParameterServer::lose(int worker) {
  const bool counted = clocks_.state(worker) == sync::server::WorkerClocks::State::Live;
  end(worker);
  if (!counted) return;
  report_.lost.push_back(worker);
  if (options_.consistency == Consistency::Bsp && options_.on_loss == OnRankFailure::Fail && !failed_) failed_ = worker;
}

void ParameterServer::give_up_on_silent() {
  const auto now = std::chrono::steady_clock::now();
  for (int worker = 0; worker < clocks_.size(); ++worker) {
    auto& waiting = at(worker).waiting;
    if (!waiting || waiting->until > now) continue;
    waiting->until = after(options_.deadline_seconds);
    const int64_t least = needed(*waiting);
    for (int other = 0; other < clocks_.size(); ++other) {
      const bool live = clocks_.state(other) == sync::server::WorkerClocks::State::Live;
      if (other != worker && live && clocks_.clock(other) < least) lose(other);
    }
  }
}

Channel::Time ParameterServer::next_deadline() const {
  Channel::Time first = Channel::kNoDeadline;
  for (const Worker& worker : workers_) {
    if (worker.waiting) first = std::min(first, worker.waiting->until);
  }
  return first;
}

// All workers fetch at the same time, before a checkpoint.
void ParameterServer::fetch(int worker, const sync::server::Envelope& request) {
  if (!fetched_) fetched_ = Fetched{shard_.state_copy()};
  ChannelMessage message = sync::server::message_of({static_cast<int64_t>(sync::server::AnswerKind::Fetched),
                                                     request.session, request.number, shard_.state().num_steps, 0});
  sync::server::pack(fetched_->state, message);
  send(worker, std::move(message));
  if (++fetched_->num_answers >= clocks_.num_live()) fetched_.reset();
}

void ParameterServer::store(int worker, const sync::server::Envelope& request, const ChannelMessage& message) {
  auto state = sync::server::unpacked_state(message, shard_.shape(), shard_.rule());
  if (!state) {
    ++report_.num_damaged;
    return;
  }
  if (request.number > at(worker).stored) {  // a late repetition would undo later updates
    at(worker).stored = request.number;
    state->num_steps = request.a;
    fetched_.reset();
    shard_.set_state(std::move(*state));
  }
  answer(worker, sync::server::AnswerKind::Stored, {.number = request.number});
}

void ParameterServer::tell_clock(int worker, const sync::server::Envelope& request) {
  if (request.a < 0 || request.a >= clocks_.size()) return static_cast<void>(++report_.num_damaged);
  const int of = static_cast<int>(request.a);
  const bool ended = clocks_.state(of) == sync::server::WorkerClocks::State::Ended;
  answer(worker, sync::server::AnswerKind::Clock, {.number = request.number, .a = clocks_.clock(of), .b = ended});
}

void ParameterServer::answer(int worker, sync::server::AnswerKind kind, sync::server::Envelope fields) {
  fields.kind = static_cast<int64_t>(kind);
  fields.session = at(worker).session;
  send(worker, sync::server::message_of(fields));
}

void ParameterServer::send(int worker, ChannelMessage message) {
  report_.bytes_sent += message.num_bytes();
  channel_.send(options_.first_worker + worker, sync::server::kAnswerTag, std::move(message));
}

}  // namespace braid
