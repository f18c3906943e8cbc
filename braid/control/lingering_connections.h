// Lines on which nothing is expected any more, held until what was last said has reached the other host: a socket that
// is closed earlier may take it back.
#pragma once

#include <memory>
#include <vector>

#include "braid/control/tls_connection.h"

namespace braid::control {

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

}  // namespace braid::control
