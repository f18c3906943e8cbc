// Makes the exchanges between all members.
#include "braid/comm/transport/exchange.h"

namespace braid::comm::transport {
namespace {

using Bytes = Collective::Bytes;

// Bytes of scratch memory for what one member sends another.
int64_t input_bytes(const Collective& collective) {
  if (!collective.combines()) return 0;
  const int64_t n = collective.group().size(), stretch = collective.stretch_bytes();
  const int64_t bytes = collective.by_shares() ? (stretch + n - 1) / n + Collective::kCacheLine : stretch;
  return (bytes + Collective::kCacheLine - 1) / Collective::kCacheLine * Collective::kCacheLine;
}

// Returns the other members, beginning with the next one, so that not all send to the same one first.
std::vector<int> others(const Group& group) {
  std::vector<int> members;
  for (int step = 1; step < group.size(); ++step) members.push_back((group.rank + step) % group.size());
  return members;
}

}  // namespace

int64_t direct_scratch_bytes(const Collective& collective) {
  return input_bytes(collective) * collective.group().size();
}

std::vector<Exchange> direct_exchanges(const Collective& collective, const Collective::Stretch& stretch,
                                       std::byte* scratch) {
  const Group& group = collective.group();
  const int64_t input = input_bytes(collective);
  std::vector<Exchange> exchanges(collective.by_shares() ? 2 : 1);
  for (const int member : others(group)) {
    Bytes received = collective.received_first(stretch, member);
    if (collective.combines()) received.data = scratch + member * input;
    exchanges[0].receives.push_back({member, received});
    exchanges[0].sends.push_back({member, collective.sent_first(stretch, member)});
    if (!collective.by_shares()) continue;
    exchanges[1].receives.push_back({member, collective.result(stretch, member)});
    exchanges[1].sends.push_back({member, collective.result(stretch, group.rank)});
  }
  // A sum in place overwrites what the rank has sent.
  exchanges[0].awaits_sends = collective.call().kind == CallKind::AllReduce && !collective.by_shares();
  exchanges[0].then = [&collective, stretch, scratch, input] {
    if (!collective.combines()) return collective.copy_own(stretch);
    std::vector<const void*> inputs;
    for (int member = 0; member < collective.group().size(); ++member) inputs.push_back(scratch + member * input);
    collective.combine(stretch, inputs);
  };
  return exchanges;
}

}  // namespace braid::comm::transport
