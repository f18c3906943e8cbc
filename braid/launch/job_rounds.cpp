// Messages of a node that is ahead are stored until this node begins their round.
#include "braid/launch/job_rounds.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::launch {
namespace {

// Limit of memory for stored messages of one node.
constexpr size_t kMostWaitingBytes = size_t{256} << 20;
constexpr size_t kMessageBytes = 256;  // memory that a message uses beside its bytes

size_t memory_of(const control::JobEvent& event) { return event.bytes.size() + kMessageBytes; }

}  // namespace

JobRounds::JobRounds(control::JobControl& control, double progress_seconds)
    : control_(control), progress_seconds_(progress_seconds), waiting_bytes_(nodes().size()), reports_(nodes().size()) {
  control_.set_validator([this](const control::JobEvent& event) { return judge(event); });
  end();
}

JobRounds::~JobRounds() {
  leave();
  control_.set_validator({});
}

void JobRounds::begin() {
  begun_ = now_seconds();
  if (heartbeats_) take(heartbeats_->leave());
  heartbeats_.reset();
  ++number_;
}

void JobRounds::end() {
  if (nodes().size() > 1) heartbeats_.emplace(control_, progress_seconds_);
}

void JobRounds::broadcast(RoundBody body) { control_.broadcast(round_message_bytes({number_, std::move(body)})); }

void JobRounds::report(RanksReport report) {
  report.round = number_;
  control_.report_progress(ranks_report_bytes(std::move(report)));
}

// Called on the thread that receives messages. Between rounds this is the HeartbeatThread, and no other thread uses
// this object.
std::string JobRounds::judge(const control::JobEvent& event) {
  const RoundReader reader{nodes(), number_};
  std::string fault;
  if (event.kind == control::JobEvent::Kind::Progress) {
    reader.report(event.node, event.bytes, fault);
    return fault;
  }
  size_t& waiting = waiting_bytes_[static_cast<size_t>(event.node)];
  waiting += memory_of(event);
  if (waiting > kMostWaitingBytes) return "has sent more than the others can store";
  reader.message(event.bytes, fault);
  return fault;
}

void JobRounds::take(std::vector<control::JobEvent> events) {
  const RoundReader reader{nodes(), number_};
  std::string none;
  for (control::JobEvent& event : events) {
    if (event.kind == control::JobEvent::Kind::Progress) {
      reports_[static_cast<size_t>(event.node)] = reader.report(event.node, event.bytes, none);
    } else if (event.kind == control::JobEvent::Kind::Lost) {
      if (lost_node_ >= 0) continue;
      lost_node_ = event.node;
      loss_ = cat("node ", event.node, " on ", nodes()[static_cast<size_t>(event.node)].host, " ", event.bytes);
    } else if (auto message = reader.message(event.bytes, none)) {
      waiting_.push_back({message->round, memory_of(event), {event.node, std::move(message->body)}});
    }
  }
}

std::vector<RoundEvent> JobRounds::take_events() {
  take(control_.advance());
  std::ranges::fill(waiting_bytes_, 0);
  std::vector<RoundEvent> now;
  std::deque<Waiting> later;
  for (auto& [round, bytes, event] : waiting_) {
    if (round == number_) now.push_back(std::move(event));
    if (round <= number_) continue;
    waiting_bytes_[static_cast<size_t>(event.node)] += bytes;
    later.push_back({round, bytes, std::move(event)});
  }
  waiting_ = std::move(later);
  return now;
}

std::vector<std::optional<RanksReport>> JobRounds::take_reports() {
  return std::exchange(reports_, std::vector<std::optional<RanksReport>>(nodes().size()));
}

// If node 0 relays an impossible message as one of this node, node 0 has forged it.
void JobRounds::fail_node(int node, const std::string& why) {
  check(node != 0 || this->node() != 0, cat("node 0 ", why));
  if (node == this->node()) return fail_node(0, cat("has relayed a message of node ", node, ", which ", why));
  take({{control::JobEvent::Kind::Lost, node, why}});
  control_.fail_node(node, why);
  take(control_.advance());
}

void JobRounds::take(std::vector<std::optional<std::string>>& all, RoundEvent& event) {
  auto* contribution = std::get_if<Contribution>(&event.body);
  auto& place = all[static_cast<size_t>(event.node)];
  if (!contribution) return fail_node(event.node, "has sent a message about ranks while none run");
  if (place) return fail_node(event.node, "has contributed twice to one exchange");
  place = std::move(contribution->bytes);
}

std::vector<std::string> JobRounds::exchange_bytes(std::string own) {
  begin();
  broadcast(Contribution{std::move(own)});
  std::vector<std::optional<std::string>> all(nodes().size());
  const auto complete = [&] { return std::ranges::all_of(all, [](const auto& one) { return one.has_value(); }); };
  for (;;) {
    for (RoundEvent& event : take_events()) take(all, event);
    if (complete()) break;
    if (lost_node_ >= 0) throw_loss();
    std::vector<pollfd> watched;
    const int most = control_.watch(watched);
    poll(watched.data(), watched.size(), std::min(most, 1000));
  }
  std::vector<std::string> bytes;
  for (auto& one : all) bytes.push_back(std::move(*one));
  return bytes;
}

void JobRounds::throw_loss() const { throw CommError({"the nodes' agreement", -1, now_seconds() - begun_, loss_}); }

}  // namespace braid::launch
