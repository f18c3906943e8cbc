// Accepts connections on node 0: authentication, then the TLS handshake, then the hello.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "braid/control/authenticator.h"
#include "braid/control/job_message.h"
#include "braid/control/tls_connection.h"

namespace braid::control {

// Connections that stay open only until the other host has acknowledged the last bytes sent to it. Closing a socket
// earlier may discard those bytes.
class LingeringConnections {
 public:
  // Keeps `line` open for at most `seconds`.
  void add(std::unique_ptr<TlsConnection> line, double seconds);
  void watch(std::vector<pollfd>& watched) const;
  // Sends, discards received messages, and closes connections that are done. Does not block.
  void advance();
  // Blocks until all connections are closed, for at most `seconds`.
  void wait(double seconds);
  bool empty() const { return lines_.empty(); }

 private:
  struct Parting {
    std::unique_ptr<TlsConnection> line;
    double until;
  };

  std::vector<Parting> lines_;
};

struct AcceptedConnection {
  std::unique_ptr<TlsConnection> line;
  std::optional<JobHello> hello;  // empty until the hello has arrived
  double since = 0;               // when the connection was accepted (now_seconds())
};

class Acceptor {
 public:
  // The most connections whose hello has not arrived. Each may buffer an incomplete hello of up to 16 MiB, so together
  // they use at most 1 GiB.
  static constexpr size_t kMaxPending = 64;
  // When kMaxPending connections wait and another arrives, the oldest is dropped if it has waited for longer than
  // this. Otherwise the new connection is closed, and its node reconnects.
  static constexpr double kPatienceSeconds = 1;

  // REQUIRES: `context` outlives this and the connections that it accepts. `most_queued` is that of TlsConnection.
  Acceptor(Authenticator authenticator, const TlsContext& context, size_t most_queued);

  void watch(std::vector<pollfd>& watched) const;
  // Returns the time (now_seconds()) at which to call advance() even if no descriptor is ready.
  double due() const;
  // Accepts connections. Drops connections that closed, sent anything but one hello and heartbeats, or sent no hello
  // within 10 s.
  void advance();
  // Returns the authenticated connections, oldest first. The caller may remove those that it takes over.
  std::vector<AcceptedConnection>& arrivals() { return arrivals_; }
  const Authenticator& authenticator() const { return authenticator_; }
  // Returns the address of the last connection that failed before its hello, and the reason; empty if there is none.
  const std::string& last_fault() const { return last_fault_; }

  // Sends `reasons` in a JobRefusal. The connection lingers for up to 5 s.
  void refuse(AcceptedConnection arrival, const std::vector<std::string>& reasons);
  // Keeps `line` open until the other host has acknowledged all bytes sent, for at most `seconds`.
  void part(std::unique_ptr<TlsConnection> line, double seconds) { leaving_.add(std::move(line), seconds); }
  // Blocks until all lingering connections are closed, for at most `seconds`.
  void finish(double seconds) { leaving_.wait(seconds); }

 private:
  bool stays(AcceptedConnection& arrival);
  bool make_room();

  Authenticator authenticator_;
  const TlsContext& context_;
  const size_t most_queued_;
  std::vector<AcceptedConnection> arrivals_;
  LingeringConnections leaving_;
  std::string last_fault_;
};

}  // namespace braid::control
