// Sending, waiting and resending of a client.
#include <algorithm>
#include <chrono>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/sync/server/server_client.h"

namespace braid {
namespace {

Channel::Time in_seconds(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<Channel::Time::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

void ServerClient::fail(const char* what, int rank, const std::string& why) const {
  throw CommError({cat(what, " of the worker at endpoint ", channel_.endpoint()), rank, 0, why});
}

// Handles the close of a server. A server ends after all workers have left, and its answer may have been lost.
void ServerClient::server_closed(const char* what, int server) {
  if (leaving_) {
    unacked_[static_cast<size_t>(server)].clear();
    if (!outstanding_.empty()) outstanding_[static_cast<size_t>(server)].reset();
    return;
  }
  fail(what, server, cat("server ", server, " has closed its channel"));
}

Delivery ServerClient::send(int server, ChannelMessage message) {
  report_.bytes_sent += message.num_bytes();
  return channel_.send(server, sync::server::kRequestTag, std::move(message));
}

void ServerClient::send_again() {
  for (int server = 0; server < num_servers_; ++server) {
    for (const auto& [sequence, message] : unacked_[static_cast<size_t>(server)]) {
      send(server, message);
      ++report_.num_resent;
    }
    if (outstanding_.empty() || !outstanding_[static_cast<size_t>(server)]) continue;
    send(server, *outstanding_[static_cast<size_t>(server)]);
    ++report_.num_resent;
  }
}

void ServerClient::ask(const char* what, Requests requests, sync::server::AnswerKind expected, const Reader& read) {
  outstanding_ = std::move(requests);
  expected_ = expected;
  read_ = &read;
  struct Ended {  // also after an exception, when the target of `read` is gone
    ServerClient& client;
    ~Ended() {
      client.outstanding_.clear();
      client.read_ = nullptr;
    }
  } const ended{*this};
  for (int server = 0; server < num_servers_; ++server) {
    const auto& request = outstanding_[static_cast<size_t>(server)];
    if (request && send(server, *request) == Delivery::PeerClosed) server_closed(what, server);
  }
  receive_until(what, [this] {
    return std::none_of(outstanding_.begin(), outstanding_.end(), [](const auto& r) { return r.has_value(); });
  });
}

template <class Done>
void ServerClient::receive_until(const char* what, const Done& done) {
  const double begin = now_seconds();
  const Channel::Time deadline = in_seconds(options_.deadline_seconds);
  while (!done()) {
    const bool retries = options_.retry_seconds > 0;
    const ChannelEvent event = channel_.recv_any(
        sync::server::kAnswerTag, retries ? std::min(deadline, in_seconds(options_.retry_seconds)) : deadline);
    switch (event.kind) {
      case ChannelEvent::Kind::Received:
        handle(what, event.peer, event.message);
        break;
      case ChannelEvent::Kind::Closed:
        if (event.peer == channel_.endpoint()) fail(what, event.peer, "the channel is closed");
        if (event.peer < num_servers_) server_closed(what, event.peer);
        break;
      case ChannelEvent::Kind::TimedOut:
        if (std::chrono::steady_clock::now() >= deadline) fail(what, -1, "no answer until the deadline");
        send_again();
    }
  }
  report_.waiting_seconds += now_seconds() - begin;
}

void ServerClient::leave() {
  push_rest();
  leaving_ = true;
  const auto none_left = [this] {
    return std::all_of(unacked_.begin(), unacked_.end(), [](const auto& pushes) { return pushes.empty(); });
  };
  receive_until("leave", none_left);
  ask("leave", to_all(sync::server::RequestKind::Leave, clock_), sync::server::AnswerKind::Left,
      [](int, const sync::server::Envelope&, const ChannelMessage&) { return true; });
}

void ServerClient::handle(const char* what, int server, const ChannelMessage& message) {
  report_.bytes_received += message.num_bytes();
  const auto fields = sync::server::envelope_of(message);
  if (!fields || fields->session != session_ || server >= num_servers_) return;
  switch (fields->answer()) {
    case sync::server::AnswerKind::Pushed:
      unacked_[static_cast<size_t>(server)].erase(fields->number);
      report_.server_bytes[static_cast<size_t>(server)] = fields->b;
      request_ = std::max(request_, static_cast<sync::RunRequest>(fields->c));
      if (fields->a < 0) return;
      report_.staleness.add(fields->a);
      report_.last_staleness = fields->a;
      return;
    case sync::server::AnswerKind::Gone:
      fail(what, channel_.endpoint(), "the servers count this worker as lost");
    case sync::server::AnswerKind::Failed:
      for (int other = 0; other < num_servers_; ++other) {  // so that other servers do not count this worker as lost
        send(other, sync::server::message_of({static_cast<int64_t>(sync::server::RequestKind::Leave), session_}));
      }
      fail(what, static_cast<int>(fields->number), cat("worker ", fields->number, " is lost"));
    default:
      break;
  }
  if (fields->answer() != expected_ || outstanding_.empty()) return;
  auto& request = outstanding_[static_cast<size_t>(server)];
  if (request && (*read_)(server, *fields, message)) request.reset();
}

}  // namespace braid
