// A socket of TCP that never blocks, closed with its owner and on exec.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "braid/control/job_address.h"

namespace braid::control {

// The result of a read or write. `closed` is the reason why no more bytes will follow; empty while it is connected.
struct IoResult {
  size_t bytes = 0;
  std::string closed;
};

class Socket {
 public:
  Socket() = default;  // none
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  // A listener; none where this host has no such address. Throws ConfigError about `key` where the port is taken or not
  // for this user, RunError where the system refuses otherwise.
  static Socket listening(const std::string& key, const SocketAddress& address);
  // Begins to connect; fault() says when that has failed. None where that is so at once (errno says why).
  static Socket connecting(const SocketAddress& address);

  // The next connection to a listener. None: there is nobody, or the system has no descriptor left (errno says).
  Socket accept() const;
  // Returns and clears the socket's pending error (SO_ERROR); empty if there is none.
  std::string fault() const;
  // Numeric, of the other end.
  std::string peer() const;
  // The addresses of both ends of a connection, as this host sees them. Their length is 0 if there is none.
  SocketAddress own_end() const;
  SocketAddress peer_end() const;
  // Returns true if the other host has acknowledged all bytes sent.
  bool acknowledged() const;

  IoResult receive(std::span<char> into);
  IoResult send(std::span<const char> bytes);

  int descriptor() const { return descriptor_; }  // -1: none
  explicit operator bool() const { return descriptor_ >= 0; }
  void close();

 private:
  int release();

  int descriptor_ = -1;
};

}  // namespace braid::control
