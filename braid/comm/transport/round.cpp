// Posts messages, and begins an exchange when the one before it is done.
#include "braid/comm/transport/round.h"

#include <utility>

namespace braid::comm::transport {

Round::Round(const Collective& collective, std::vector<Exchange> exchanges, int tag, MatchTable& table,
             std::function<void()> done)
    : collective_(collective), tag_(tag), table_(table), done_(std::move(done)) {
  for (Exchange& exchange : exchanges) {
    const auto kind = stages_.empty() ? Route::Kind::First : Route::Kind::Second;
    make_messages(stages_.emplace_back(*this, std::move(exchange)), kind);
  }
}

void Round::make_messages(Stage& stage, Route::Kind kind) {
  const Group& group = collective_.group();
  const auto make = [&](std::deque<Message>& messages, Message::Side side, const std::vector<Transfer>& transfers) {
    for (const auto& [member, bytes] : transfers) {
      const Route route{group.id, group.world_ranks[member], kind, tag_};
      messages.emplace_back(side, route, collective_.call(), group.name, bytes.data, bytes.count, &stage);
    }
  };
  make(stage.receives, Message::Side::Receive, stage.exchange.receives);
  make(stage.sends, Message::Side::Send, stage.exchange.sends);
  stage.awaited += static_cast<int>(stage.receives.size());
  if (stage.exchange.awaits_sends) stage.awaited += static_cast<int>(stage.sends.size());
  open_ += static_cast<int>(stage.receives.size() + stage.sends.size());
}

void Round::start() {
  const auto self = shared_from_this();
  for (Stage& stage : stages_) post(stage.receives);
  begin(0);
}

void Round::post(std::deque<Message>& messages) {
  for (Message& message : messages) table_.add(MessagePtr(shared_from_this(), &message));
}

void Round::begin(size_t number) {
  Stage& stage = stages_[number];
  post(stage.sends);
  if (--stage.awaited == 0) exchanged(stage);
}

void Round::message_done(Stage& stage, Message::Side side) {
  const bool awaits = side == Message::Side::Receive || stage.exchange.awaits_sends;
  if (awaits && --stage.awaited == 0) exchanged(stage);
  close_one();
}

void Round::exchanged(const Stage& stage) {
  if (stage.exchange.then) stage.exchange.then();
  for (size_t next = 1; next < stages_.size(); ++next) {
    if (&stages_[next - 1] == &stage) return begin(next);
  }
  close_one();
}

void Round::close_one() {
  if (--open_ == 0) done_();
}

void Round::report_missing(Stall& stall) const {
  for (const Message& message : stages_.front().receives) {
    if (!message.matched) stall.missing.push_back(message.route.peer);
  }
}

void Round::report(Stall& stall) const {
  for (const Stage& stage : stages_) {
    for (const Message& message : stage.receives) {
      const int peer = message.route.peer;
      if (stall.unfinished < 0 && message.matched && !message.done) stall.unfinished = peer;
      if (stall.lost < 0 && table_.lost(message)) stall.lost = peer;
    }
    for (const Message& message : stage.sends) {
      if (stall.lost < 0 && table_.lost(message)) stall.lost = message.route.peer;
    }
  }
}

}  // namespace braid::comm::transport
