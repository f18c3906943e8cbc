// Reads and drops what arrives. No descriptor signals acknowledged bytes, so the kernel is asked from time to time.
#include "braid/control/lingering_connections.h"

#include "braid/base/clock.h"

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

}  // namespace braid::control
