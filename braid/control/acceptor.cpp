// Accepts connections in steps, each with a time limit.
#include "braid/control/acceptor.h"

#include <algorithm>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/text.h"

namespace braid::control {
namespace {

constexpr int kAskMilliseconds = 5;

}  // namespace

void LingeringConnections::add(std::unique_ptr<TlsConnection> line, double seconds) {
  line->flush();
  lines_.push_back({std::move(line), now_seconds() + seconds});
}

void LingeringConnections::watch(std::vector<pollfd>& watched) const {
  for (const Parting& parting : lines_) watched.push_back(parting.line->wanted());
}

void LingeringConnections::advance() {
  std::erase_if(lines_, [](Parting& parting) {
    parting.line->advance();
    while (parting.line->next_message()) continue;
    return parting.line->drained() || now_seconds() > parting.until;
  });
}

void LingeringConnections::wait(double seconds) {
  const double until = now_seconds() + seconds;
  for (advance(); !lines_.empty() && now_seconds() < until; advance()) ::poll(nullptr, 0, kAskMilliseconds);
}

namespace {

constexpr double kHelloSeconds = 10, kRefusalSeconds = 5;
constexpr double kLeavingLookSeconds = 0.05;

}  // namespace

Acceptor::Acceptor(Authenticator authenticator, const TlsContext& context, size_t most_queued)
    : authenticator_(std::move(authenticator)), context_(context), most_queued_(most_queued) {}

void Acceptor::watch(std::vector<pollfd>& watched) const {
  authenticator_.watch(watched);
  leaving_.watch(watched);
  for (const AcceptedConnection& arrival : arrivals_) watched.push_back(arrival.line->wanted());
}

double Acceptor::due() const {
  double due = authenticator_.due();
  if (!leaving_.empty()) due = std::min(due, now_seconds() + kLeavingLookSeconds);
  for (const AcceptedConnection& arrival : arrivals_) {
    if (!arrival.hello) due = std::min(due, arrival.since + kHelloSeconds);
  }
  return due;
}

void Acceptor::advance() {
  for (Socket& socket : authenticator_.advance()) {
    if (!make_room()) continue;
    auto line = std::make_unique<TlsConnection>(context_, std::move(socket), TlsSide::Server, most_queued_);
    line->limit_messages(kMostHelloBytes + 1);  // and the byte of the message's kind
    arrivals_.push_back({std::move(line), std::nullopt, now_seconds()});
  }
  std::erase_if(arrivals_, [&](AcceptedConnection& arrival) { return !stays(arrival); });
  leaving_.advance();
}

// Arrivals are in the order in which they came.
bool Acceptor::make_room() {
  const auto pending = [](const AcceptedConnection& arrival) { return !arrival.hello; };
  if (static_cast<size_t>(std::ranges::count_if(arrivals_, pending)) < kMaxPending) return true;
  const auto oldest = std::ranges::find_if(arrivals_, pending);
  if (now_seconds() - oldest->since <= kPatienceSeconds) return false;
  arrivals_.erase(oldest);
  return true;
}

bool Acceptor::stays(AcceptedConnection& arrival) {
  TlsConnection& line = *arrival.line;
  line.advance();
  std::string fault = line.fault();
  while (auto bytes = line.next_message()) {
    const auto message = parse_job_message(*bytes);
    const auto* hello = message ? std::get_if<JobHello>(&*message) : nullptr;
    if (hello != nullptr && !arrival.hello) {
      arrival.hello = *hello;
    } else if (!message || !std::holds_alternative<JobHeartbeat>(*message)) {
      fault = "has sent something else than a hello";
    }
  }
  if (fault.empty() && !arrival.hello && now_seconds() - arrival.since > kHelloSeconds)
    fault = "has not sent its hello";
  if (!fault.empty() && !arrival.hello) last_fault_ = cat(line.peer(), " ", fault);
  return fault.empty();
}

void Acceptor::refuse(AcceptedConnection arrival, const std::vector<std::string>& reasons) {
  arrival.line->send(framed_message(JobRefusal{reasons}));
  part(std::move(arrival.line), kRefusalSeconds);
}

}  // namespace braid::control
