// One round of a collective in flight: its messages, posted exchange by exchange.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "braid/comm/transport/exchange.h"
#include "braid/comm/transport/match_table.h"

namespace braid::comm::transport {

// Kept alive by its messages. Thread-safe.
class Round final : public std::enable_shared_from_this<Round> {
 public:
  // `tag` is the same on all members, and that of no other round of the group in flight. `done` is called last, on any
  // thread. REQUIRES: `table` and `collective` outlive the round.
  Round(const Collective& collective, std::vector<Exchange> exchanges, int tag, MatchTable& table,
        std::function<void()> done);

  void start();
  // Adds the members whose first messages have not come: they have not issued the collective, if this is its first
  // round.
  void report_missing(Stall& stall) const;
  // Sets a member whose part will never come, and one whose part has not come.
  void report(Stall& stall) const;

 private:
  // An exchange and its messages. What may arrive early finds its receive: all receives are posted at the start.
  struct Stage final : Message::Owner {
    Stage(Round& owner, Exchange made) : round(owner), exchange(std::move(made)) {}
    void message_done(const Message& message) override { round.message_done(*this, message.side); }

    Round& round;
    const Exchange exchange;
    std::deque<Message> receives, sends;  // their addresses stay
    std::atomic<int> awaited{1};          // messages before Exchange::then, and one until the sends are posted
  };

  void make_messages(Stage& stage, Route::Kind kind);
  void post(std::deque<Message>& messages);
  void begin(size_t number);
  void message_done(Stage& stage, Message::Side side);
  void exchanged(const Stage& stage);
  void close_one();

  const Collective& collective_;
  const int tag_;
  MatchTable& table_;
  const std::function<void()> done_;
  std::deque<Stage> stages_;
  std::atomic<int> open_{1};  // messages that are not done, and one until nothing else is to be done
};

}  // namespace braid::comm::transport
