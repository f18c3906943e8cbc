// Copies bytes between a server's keys and their place in the whole state.
#include "braid/sync/server/whole_state.h"

#include <algorithm>
#include <cstring>

#include "braid/base/errors.h"

namespace braid::sync::server {
namespace {

enum class Direction { ToPart, ToWhole };

// Copies the keys `range` of `whole` from or to `part`, which contains only these keys.
void move_keys(const at::Tensor& whole, const at::Tensor& part, const KeyRange& range, Direction direction) {
  if (part.nbytes() == 0) return;
  const size_t key_bytes = part.nbytes() / static_cast<size_t>(range.size());
  auto* of_whole = static_cast<std::byte*>(whole.mutable_data_ptr()) + static_cast<size_t>(range.begin) * key_bytes;
  if (direction == Direction::ToPart) {
    std::memcpy(part.mutable_data_ptr(), of_whole, part.nbytes());
  } else {
    std::memcpy(of_whole, part.const_data_ptr(), part.nbytes());
  }
}

void move_state(const KeyShares& shares, int server, const ShardState& whole, const ShardState& part,
                Direction direction) {
  for (size_t i = 0; i < whole.elements.size(); ++i) {
    move_keys(whole.elements[i], part.elements[i], shares.elements.of(server), direction);
  }
  for (size_t t = 0; t < whole.tables.size(); ++t) {
    const KeyRange rows = shares.rows[t].of(server);
    for (size_t i = 0; i < whole.tables[t].values.size(); ++i) {
      move_keys(whole.tables[t].values[i], part.tables[t].values[i], rows, direction);
    }
    move_keys(whole.tables[t].row_steps, part.tables[t].row_steps, rows, direction);
  }
}

}  // namespace

void add_part(const KeyShares& shares, int server, const ShardState& part, ShardState& whole) {
  // Asynchronous servers may have made different numbers of updates. The lowest number is true of all.
  whole.num_steps = std::min(whole.num_steps, part.num_steps);
  move_state(shares, server, whole, part, Direction::ToWhole);
}

ShardState part_of_state(const KeyShares& shares, const optim::ElementRule& rule, const ShardState& whole, int server) {
  ShardState part = zero_state(shares.part(server), rule);
  part.num_steps = whole.num_steps;
  move_state(shares, server, whole, part, Direction::ToPart);
  return part;
}

}  // namespace braid::sync::server
