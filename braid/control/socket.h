// A non-blocking TCP socket, closed by its destructor and by exec(2).
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
  Socket() = default;  // no descriptor
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  // Returns a socket that listens on `address`, or an empty one if this host has no such address. Throws ConfigError
  // about `key` if the port is taken or this user may not use it. Throws RunError for other errors of the system.
  static Socket listening(const std::string& key, const SocketAddress& address);
  // Begins to connect. fault() returns the error if that fails later. Returns an empty socket if it fails at once, with
  // the error in errno.
  static Socket connecting(const SocketAddress& address);

  // Returns the next connection to a listening socket. Returns an empty socket if there is none or the system has no
  // descriptor left; errno says which.
  Socket accept() const;
  // Lets the kernel retransmit for its default time (TCP_USER_TIMEOUT), for a peer that may be stopped for long.
  void be_patient() const;
  // Returns and clears the socket's pending error (SO_ERROR); empty if there is none.
  std::string fault() const;
  // Returns the numeric address of the other end, with its port.
  std::string peer() const;
  // Return the addresses of both ends of the connection, as this host sees them. An unknown address has length 0.
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
