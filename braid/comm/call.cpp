// Wording of calls.
#include "braid/comm/call.h"

#include "braid/base/text.h"

namespace braid::comm {
namespace {

const char* text(ReduceOp op) { return op == ReduceOp::Sum ? "sum" : op == ReduceOp::Max ? "max" : "min"; }

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
  }
  return "?";
}

std::string text(const Call& call) {
  std::string line = name_of(call.kind);
  if (call.kind == CallKind::Barrier || call.kind == CallKind::Split) return line + "()";
  if (call.kind == CallKind::Share) return line + cat("(root ", call.root, ")");
  bool chunked = call.kind != CallKind::AllReduce && call.kind != CallKind::Broadcast;
  line += cat("(", chunked ? "chunks of " : "", c10::toString(call.type), "[", call.chunk, "]");
  if (call.kind == CallKind::AllReduce || call.kind == CallKind::ReduceScatter) line += cat(", ", text(call.op));
  if (call.kind == CallKind::Broadcast) line += cat(", root ", call.root);
  return line + ")";
}

}  // namespace braid::comm
