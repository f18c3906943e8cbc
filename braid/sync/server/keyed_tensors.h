// Values by key, as workers and servers send them: a range of the flat parameters, and rows of tables.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/comm/channel.h"
#include "braid/sync/server/key_ranges.h"

namespace braid {

struct TableShape {
  int64_t rows = 0, width = 1;
};

// The shape of the whole model's values, or of one server's part. Values are float32 or float64.
struct KeyShape {
  at::ScalarType type = at::kFloat;
  int64_t num_elements = 0;  // number of flat parameters
  std::vector<TableShape> tables;
};

struct TableRows {
  at::Tensor index;   // int64 [n], ascending, each row once
  at::Tensor values;  // [n, width]; undefined if only the rows are named
};

struct KeyedTensors {
  at::Tensor dense;             // flat; undefined if there is none
  std::vector<TableRows> rows;  // one per table
};

// The sharding of a model over servers: elements in blocks of ParamStore::kAlign, tables by row.
struct KeyShares {
  KeyShares(const KeyShape& whole, int num_servers);

  KeyShape part(int server) const;  // its rows are numbered from 0

  KeyShape whole;
  sync::server::KeyRanges elements;
  std::vector<sync::server::KeyRanges> rows;  // one per table
};

enum class RowContent { IndexAndValues, IndexOnly };

// Appends `tensors` to a message. A table without rows adds no tensor.
void pack(const KeyedTensors& tensors, RowContent parts, ChannelMessage& message);
// Returns the tensors that pack() added after `num_fields` fields of the header. Returns nullopt if the message is
// malformed: a length, a type or an order differs from `shape` or the header.
std::optional<KeyedTensors> unpacked(const ChannelMessage& message, size_t num_fields, RowContent parts,
                                     const KeyShape& shape);

// Copies the bytes of `from` to `to`. REQUIRES: both have the same size and type, and are contiguous and on the host.
void overwrite(const at::Tensor& to, const at::Tensor& from);

// Calls `call` with a value of the C++ type of `type`.
template <class Call>
decltype(auto) with_value_of(at::ScalarType type, const Call& call) {
  return type == at::kDouble ? call(double{}) : call(float{});
}

}  // namespace braid
