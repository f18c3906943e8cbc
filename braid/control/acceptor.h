// Accepts authenticated connections on node 0: the TLS handshake, then the hello.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "braid/control/authenticator.h"
#include "braid/control/job_message.h"
#include "braid/control/tls_connection.h"

namespace braid::control {

// Lines on which nothing is expected any more, held until what was last said has reached the other host: a socket that
// is closed earlier may take it back.
class LingeringConnections {
 public:
  // Holds it for at most `seconds`.
  void add(std::unique_ptr<TlsConnection> line, double seconds);
  void watch(std::vector<pollfd>& watched) const;
  void advance();
  // Blocks until all have gone, for at most `seconds`.
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
  std::optional<JobHello> hello;  // once it has come
  double since = 0;               // seconds of the clock
};

class Acceptor {
 public:
  // Connections that have not said hello. Each may hold a hello of 16 MiB that is not whole yet: 1 GiB together.
  static constexpr size_t kMostUnheard = 64;
  // When all places are taken, the oldest connection is dropped for a new one after this time; before that the new one
  // is closed, and its node reconnects.
  static constexpr double kPatienceSeconds = 1;

  // `context` outlives it, and the lines that it makes.
  Acceptor(Authenticator gate, const TlsContext& context, size_t most_queued);

  void watch(std::vector<pollfd>& watched) const;
  // The seconds of the clock at which to call advance() though nothing is heard.
  double due() const;
  // Drops connections that have closed, have sent anything but a hello, or are late with it.
  void advance();
  // In the order in which they came. Owners of their lines may take them out.
  std::vector<AcceptedConnection>& arrivals() { return arrivals_; }
  const Authenticator& gate() const { return gate_; }
  // Why the last went before its hello; empty when none did.
  const std::string& last_fault() const { return last_fault_; }

  // Tells it why, and lets it go.
  void refuse(AcceptedConnection arrival, const std::vector<std::string>& reasons);
  // Held until what was said to it has arrived.
  void part(std::unique_ptr<TlsConnection> line, double seconds) { farewell_.add(std::move(line), seconds); }
  // Blocks until those that go have gone, for at most `seconds`.
  void finish(double seconds) { farewell_.wait(seconds); }

 private:
  bool stays(AcceptedConnection& arrival);
  bool make_room();

  Authenticator gate_;
  const TlsContext& context_;
  const size_t most_queued_;
  std::vector<AcceptedConnection> arrivals_;
  LingeringConnections farewell_;
  std::string last_fault_;
};

}  // namespace braid::control
