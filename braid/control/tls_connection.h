// A non-blocking connection that carries whole messages over TLS 1.3 with a pre-shared key (RFC 8446, 4.2.11).
#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <string>

#include "braid/control/frame.h"
#include "braid/control/job_token.h"
#include "braid/control/socket.h"

namespace braid::control {

// State shared by all connections of a job.
class TlsContext {
 public:
  explicit TlsContext(std::shared_ptr<const JobKeys> keys);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Drops the keys. Established connections continue; new ones cannot be established.
  void forget_keys();

 private:
  friend class TlsConnection;
  struct State;

  std::unique_ptr<State> state_;
};

enum class TlsSide { Server, Client };

class TlsConnection {
 public:
  // REQUIRES: `context` outlives this. At most `most_queued` bytes may wait to be sent.
  TlsConnection(const TlsContext& context, Socket socket, TlsSide side, size_t most_queued);
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  // Refuses messages of more than `bytes`; kMostFrameBytes until this is called.
  void limit_messages(size_t bytes) { reader_.limit(bytes); }
  // Queues `frame`. Ends the connection if more than `most_queued` bytes are then queued, because the other end does
  // not read.
  void send(const Frame& frame);
  // Reads up to 1 MiB, and writes. Does not block.
  void advance();
  void flush();  // writes only
  // Returns the next complete message; nothing if there is none. Also returns messages received before a fault().
  std::optional<std::string> next_message();

  // Returns true if anything has arrived since the last call.
  bool take_activity();
  // Returns true if both ends have proved that they have the key.
  bool established() const;
  // Returns the reason why the connection has ended, such as "has closed its connection". Empty while it is open.
  const std::string& fault() const { return fault_; }
  // Returns true if the other host's system has acknowledged all bytes, or if nothing more can be sent.
  bool drained() const;
  // Returns the descriptor and events to poll. The descriptor is -1 if the connection has ended.
  pollfd wanted() const;
  // Returns the numeric address of the other end, with its port.
  const std::string& peer() const { return peer_; }

 private:
  struct Tls;

  void decrypt();
  void encrypt();
  void end(const std::string& why);

  Socket socket_;
  std::unique_ptr<Tls> tls_;
  const size_t most_queued_;
  const std::string peer_;
  FrameReader reader_;
  std::deque<Frame> queue_;
  size_t queued_bytes_ = 0;   // bytes of queue_ that are not yet encrypted
  size_t begun_bytes_ = 0;    // encrypted bytes of the first frame in queue_
  std::string outgoing_;      // encrypted bytes to send
  bool active_ = false;       // something has arrived since take_activity()
  bool send_failed_ = false;  // nothing more is sent
  std::string fault_;
};

}  // namespace braid::control
