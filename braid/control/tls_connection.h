// A connection of TLS 1.3 by a key that both ends have (RFC 8446, 4.2.11), on which whole messages travel. It never
// waits.
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

  // Lines that are established go on; no new one can begin.
  void forget_keys();

 private:
  friend class TlsConnection;
  struct State;

  std::unique_ptr<State> state_;
};

enum class TlsSide { Server, Client };

class TlsConnection {
 public:
  // `context` outlives it. What waits to be sent is at most `most_queued` bytes.
  TlsConnection(const TlsContext& context, Socket socket, TlsSide side, size_t most_queued);
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  // Refuses messages of more than `bytes`; kMostFrameBytes until this is called.
  void limit_messages(size_t bytes) { reader_.limit(bytes); }
  // Queues it. A line on which too much waits is one whose other end does not read: it ends.
  void send(const Frame& frame);
  // Reads, up to 1 MiB, and writes.
  void advance();
  void flush();  // writes only
  // The next message that has come whole. Those that came before fault() arose are there too.
  std::optional<std::string> next_message();

  // Returns true if anything has arrived since the last call.
  bool take_heard();
  // Both ends have shown that they have the key.
  bool established() const;
  // Why the line has ended ("has closed its connection"); empty while it stands.
  const std::string& fault() const { return fault_; }
  // All that was sent has been acknowledged by the other host's system, or nothing can be sent.
  bool drained() const;
  // To wait for; a descriptor of -1 when it has ended.
  pollfd wanted() const;
  // Numeric.
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
  size_t queued_bytes_ = 0, begun_bytes_ = 0;  // of all the queue; of its first frame, those that are encrypted
  std::string outgoing_;                       // encrypted
  bool heard_ = false, deaf_ = false;          // deaf: the other end takes nothing any more
  std::string fault_;
};

}  // namespace braid::control
