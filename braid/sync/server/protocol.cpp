// Writes and reads the tensors of a ShardState in messages.
#include "braid/sync/server/protocol.h"

namespace braid::sync::server {

void pack(const ShardState& state, ChannelMessage& message) {
  auto& tensors = message.tensors;
  tensors.insert(tensors.end(), state.elements.begin(), state.elements.end());
  for (const auto& table : state.tables) {
    tensors.insert(tensors.end(), table.values.begin(), table.values.end());
    tensors.push_back(table.row_steps);
  }
}

std::optional<ShardState> unpacked_state(const ChannelMessage& message, const KeyShape& shape,
                                         const optim::ElementRule& rule) {
  const auto each = static_cast<size_t>(1 + rule.num_states());
  if (message.header.size() != Envelope::kNumFields) return std::nullopt;
  if (message.tensors.size() != each + shape.tables.size() * (each + 1)) return std::nullopt;
  ShardState state;
  auto next = message.tensors.begin();
  state.elements.assign(next, next + static_cast<std::ptrdiff_t>(each));
  next += static_cast<std::ptrdiff_t>(each);
  for (size_t t = 0; t < shape.tables.size(); ++t) {
    auto& table = state.tables.emplace_back();
    table.values.assign(next, next + static_cast<std::ptrdiff_t>(each));
    next += static_cast<std::ptrdiff_t>(each);
    table.row_steps = *next++;
  }
  if (!fits(state, shape, rule)) return std::nullopt;
  return state;
}

}  // namespace braid::sync::server
