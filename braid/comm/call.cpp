// The wording of calls.
#include "braid/comm/call.h"

#include "braid/base/text.h"

namespace braid::comm {
namespace {

const char* text(ReduceOp op) { return op == ReduceOp::Sum ? "sum" : op == ReduceOp::Max ? "max" : "min"; }

std::string tensor_text(const Call& call) { return cat(c10::toString(call.type), "[", call.chunk, "]"); }

std::string arguments_text(const Call& call) {
  const std::string tensor = tensor_text(call);
  switch (call.kind) {
    case CallKind::AllReduce:
      return cat(tensor, ", ", text(call.op));
    case CallKind::ReduceScatter:
      return cat("chunks of ", tensor, ", ", text(call.op));
    case CallKind::AllGather:
    case CallKind::AllToAll:
      return cat("chunks of ", tensor);
    case CallKind::Broadcast:
      return cat(tensor, ", root ", call.root);
    case CallKind::Barrier:
    case CallKind::Split:
      return "";
    case CallKind::Share:
      return cat("root ", call.root);
    case CallKind::Send:
      return cat(tensor, ", to ", call.root, ", tag ", call.tag);
    case CallKind::Receive:
      return cat(tensor, ", from ", call.root, ", tag ", call.tag);
  }
  return "";
}

std::string name_text(const Call& call) { return call.name.text().empty() ? "" : cat(" for ", call.name.text()); }

std::string side_text(const Call& call) {
  return cat(call.kind == CallKind::Send ? "sends " : "receives ", tensor_text(call), name_text(call), " in batch #",
             call.number);
}

}  // namespace

std::string name_of(CallKind kind) {
  switch (kind) {
    case CallKind::AllReduce:
      return "all_reduce";
    case CallKind::ReduceScatter:
      return "reduce_scatter";
    case CallKind::AllGather:
      return "all_gather";
    case CallKind::AllToAll:
      return "all_to_all";
    case CallKind::Broadcast:
      return "broadcast";
    case CallKind::Barrier:
      return "barrier";
    case CallKind::Split:
      return "split";
    case CallKind::Share:
      return "share";
    case CallKind::Send:
      return "send";
    case CallKind::Receive:
      return "receive";
  }
  return "?";
}

std::string text(const Call& call) { return cat(name_of(call.kind), "(", arguments_text(call), ")", name_text(call)); }

std::string numbered_text(const Call& call) {
  return cat(call.is_transfer() ? "batch #" : "#", call.number, " ", text(call));
}

std::string label_of(const Call& call, std::string_view group) {
  return cat(name_of(call.kind), " #", call.number, " on ", group, name_text(call));
}

std::string transfer_label(const Call& call, int rank, std::string_view group) {
  const bool sends = call.kind == CallKind::Send;
  const int sender = sends ? rank : call.root, receiver = sends ? call.root : rank;
  return cat("transfer ", sender, " -> ", receiver, " tag ", call.tag, " on ", group, " in batch #", call.number,
             name_text(call));
}

std::string mismatch_text(const Call& mine, int peer, const Call& theirs, std::string_view group) {
  if (mine.is_transfer()) return cat(side_text(mine), " where rank ", peer, " ", side_text(theirs), " on ", group);
  return cat("called ", text(mine), " where rank ", peer, " called ", text(theirs), " (call #", mine.number, " on ",
             group, ")");
}

}  // namespace braid::comm
