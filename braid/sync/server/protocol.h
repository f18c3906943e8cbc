// The messages between a worker and a server (docs/parameter_server.md): a header of six fields, then the content of
// each kind. A malformed message is ignored, and its sender sends it again.
#pragma once

#include <bit>
#include <optional>

#include "braid/sync/server/server_shard.h"

namespace braid::sync::server {

inline constexpr int kRequestTag = 1, kAnswerTag = 2;

enum class RequestKind : int64_t {
  Join = 1,  // a new session
  Start,     // number: the first clock
  Push,      // number: sequence; a: version of the last pull; b: learning rate; KeyedTensors
  Pull,      // a: the worker's clock; b: 1 if the flat parameters are requested; requested rows, by index
  Fetch,
  Store,  // a: number of steps; the tensors of a ShardState
  Leave,
  Clock,  // a: a worker
};

enum class AnswerKind : int64_t {
  Joined = 1,  // number: the worker's clock
  Started,
  // number: sequence; a: updates since the push's version, -1 if repeated; b: ServerOptions::memory_bytes(); c:
  // ServerOptions::request()
  Pushed,
  Pulled,   // number: of the request; a: version; b: the slowest worker's clock; KeyedTensors
  Fetched,  // number: of the request; a and tensors as for Store
  Stored,   // number: of the request
  Left,
  Gone,    // the session is over: the server counts the worker as lost
  Failed,  // number: the worker that was lost
  Clock,   // number: of the request; a: the worker's clock; b: 1 if it has left or is lost
};

struct Envelope {
  static constexpr size_t kNumFields = 6;

  int64_t kind = 0;
  int64_t session = 0;  // session of the worker; increases each time it joins again
  int64_t number = 0;
  int64_t a = 0, b = 0, c = 0;

  RequestKind request() const { return static_cast<RequestKind>(kind); }
  AnswerKind answer() const { return static_cast<AnswerKind>(kind); }
};

inline ChannelMessage message_of(const Envelope& fields) {
  return {{fields.kind, fields.session, fields.number, fields.a, fields.b, fields.c}, {}};
}

inline std::optional<Envelope> envelope_of(const ChannelMessage& message) {
  const auto& h = message.header;
  if (h.size() < Envelope::kNumFields) return std::nullopt;
  return Envelope{h[0], h[1], h[2], h[3], h[4], h[5]};
}

inline int64_t bits_of(double value) { return std::bit_cast<int64_t>(value); }
inline double double_of(int64_t bits) { return std::bit_cast<double>(bits); }

// Appends the tensors of `state` to a message.
void pack(const ShardState& state, ChannelMessage& message);
// Returns the state without its number of steps; nullopt if it does not fit `shape` and `rule`.
std::optional<ShardState> unpacked_state(const ChannelMessage& message, const KeyShape& shape,
                                         const optim::ElementRule& rule);

}  // namespace braid::sync::server
