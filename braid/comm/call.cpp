// Wording of calls.
#include "braid/comm/call.h"

#include "braid/base/text.h"

namespace braid {
namespace {

const char* text(ReduceOp op) { return op == ReduceOp::Sum ? "sum" : op == ReduceOp::Max ? "max" : "min"; }

}  // namespace

std::string name_of(Kind kind) {
  switch (kind) {
    case Kind::AllReduce:
      return "all_reduce";
    case Kind::ReduceScatter:
      return "reduce_scatter";
    case Kind::AllGather:
      return "all_gather";
    case Kind::AllToAll:
      return "all_to_all";
    case Kind::Broadcast:
      return "broadcast";
    case Kind::Barrier:
      return "barrier";
    case Kind::Split:
      return "split";
    case Kind::Share:
      return "share";
  }
  return "?";
}

std::string text(const Call& call) {
  std::string line = name_of(call.kind);
  if (call.kind == Kind::Barrier || call.kind == Kind::Split) return line + "()";
  if (call.kind == Kind::Share) return line + cat("(root ", call.root, ")");
  bool chunked = call.kind != Kind::AllReduce && call.kind != Kind::Broadcast;
  line += cat("(", chunked ? "chunks of " : "", c10::toString(call.type), "[", call.chunk, "]");
  if (call.kind == Kind::AllReduce || call.kind == Kind::ReduceScatter) line += cat(", ", text(call.op));
  if (call.kind == Kind::Broadcast) line += cat(", root ", call.root);
  return line + ")";
}

}  // namespace braid
