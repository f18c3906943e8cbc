// Packs and reads messages. A message may come from any sender, so reading validates every length first.
#include "braid/sync/server/keyed_tensors.h"

#include <cstring>

#include "braid/base/errors.h"
#include "braid/param/param_store.h"

namespace braid {
namespace {

constexpr int64_t kNoDense = -1;

bool is_whole(const at::Tensor& tensor, at::ScalarType type, int64_t numel) {
  return tensor.defined() && tensor.scalar_type() == type && tensor.numel() == numel && tensor.is_contiguous();
}

bool ascends_below(const at::Tensor& index, int64_t end) {
  const int64_t* row = index.const_data_ptr<int64_t>();
  for (int64_t i = 0, last = -1; i < index.numel(); last = row[i++]) {
    if (row[i] <= last || row[i] >= end) return false;
  }
  return true;
}

// A reader of a message's tensors, one after another.
class Unpacking {
 public:
  Unpacking(const ChannelMessage& message, const KeyShape& shape) : message_(message), shape_(shape) {}

  bool dense(int64_t elements, at::Tensor& out) {
    if (elements == kNoDense) return true;
    return elements == shape_.num_elements && next(shape_.type, elements, out);
  }
  bool rows(int64_t count, const TableShape& table, RowContent parts, TableRows& out) {
    if (count == 0) return true;
    if (!next(at::kLong, count, out.index) || !ascends_below(out.index, table.rows)) return false;
    return parts == RowContent::IndexOnly || next(shape_.type, count * table.width, out.values);
  }
  bool at_end() const { return taken_ == message_.tensors.size(); }

 private:
  bool next(at::ScalarType type, int64_t numel, at::Tensor& out) {
    if (at_end()) return false;
    out = message_.tensors[taken_++];
    return is_whole(out, type, numel);
  }

  const ChannelMessage& message_;
  const KeyShape& shape_;
  size_t taken_ = 0;
};

}  // namespace

KeyShares::KeyShares(const KeyShape& whole, int num_servers)
    : whole(whole), elements(whole.num_elements, num_servers, param::ParamStore::kAlign) {
  check(whole.type == at::kFloat || whole.type == at::kDouble, "servers keep float32 or float64");
  for (const TableShape& table : whole.tables) rows.emplace_back(table.rows, num_servers);
}

KeyShape KeyShares::part(int server) const {
  KeyShape part{whole.type, elements.of(server).size(), {}};
  for (size_t t = 0; t < rows.size(); ++t) part.tables.push_back({rows[t].of(server).size(), whole.tables[t].width});
  return part;
}

void pack(const KeyedTensors& tensors, RowContent parts, ChannelMessage& message) {
  message.header.push_back(tensors.dense.defined() ? tensors.dense.numel() : kNoDense);
  if (tensors.dense.defined()) message.tensors.push_back(tensors.dense);
  for (const TableRows& table : tensors.rows) {
    const int64_t count = table.index.defined() ? table.index.numel() : 0;
    message.header.push_back(count);
    if (count == 0) continue;
    message.tensors.push_back(table.index);
    if (parts == RowContent::IndexAndValues) message.tensors.push_back(table.values);
  }
}

std::optional<KeyedTensors> unpacked(const ChannelMessage& message, size_t num_fields, RowContent parts,
                                     const KeyShape& shape) {
  if (message.header.size() != num_fields + 1 + shape.tables.size()) return std::nullopt;
  KeyedTensors tensors;
  tensors.rows.resize(shape.tables.size());
  Unpacking rest(message, shape);
  if (!rest.dense(message.header[num_fields], tensors.dense)) return std::nullopt;
  for (size_t t = 0; t < shape.tables.size(); ++t) {
    const int64_t count = message.header[num_fields + 1 + t];
    if (!rest.rows(count, shape.tables[t], parts, tensors.rows[t])) return std::nullopt;
  }
  if (!rest.at_end()) return std::nullopt;
  return tensors;
}

void overwrite(const at::Tensor& to, const at::Tensor& from) {
  if (to.nbytes() > 0) std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes());
}

}  // namespace braid
