// Values by key, as they travel between workers and servers: a stretch of the flat parameters, and rows of tables.
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

// What there is to be kept, of the whole model or of one server's part. Values are float32 or float64.
struct KeyShape {
  at::ScalarType type = at::kFloat;
  int64_t num_elements = 0;  // of the flat parameters
  std::vector<TableShape> tables;
};

struct TableRows {
  at::Tensor index;   // int64 [n], ascending, each row once
  at::Tensor values;  // [n, width]; undefined where only the rows are named
};

struct KeyedTensors {
  at::Tensor dense;             // flat; undefined where there is none
  std::vector<TableRows> rows;  // one per table
};

// How a model is sharded over servers: elements in blocks of ParamStore::kAlign, tables by row.
struct KeyShares {
  KeyShares(const KeyShape& whole, int num_servers);

  KeyShape part(int server) const;  // its rows count from 0

  KeyShape whole;
  sync::server::KeyRanges elements;
  std::vector<sync::server::KeyRanges> rows;  // one per table
};

enum class RowContent { IndexAndValues, IndexOnly };

// Adds `tensors` to the end of a message; a table without rows takes no tensor.
void pack(const KeyedTensors& tensors, RowContent parts, ChannelMessage& message);
// What pack() added after `num_fields` of header, or nothing when the message is not whole: a length, a type or an
// order is not what `shape` and the header say.
std::optional<KeyedTensors> unpacked(const ChannelMessage& message, size_t num_fields, RowContent parts,
                                     const KeyShape& shape);

// Copies the bytes of `from` over those of `to`: of one size and type, contiguous, on the host.
void overwrite(const at::Tensor& to, const at::Tensor& from);

// Calls `call` with a value of the C++ type of `type`.
template <class Call>
decltype(auto) with_value_of(at::ScalarType type, const Call& call) {
  return type == at::kDouble ? call(double{}) : call(float{});
}

}  // namespace braid
