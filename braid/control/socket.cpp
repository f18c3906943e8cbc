// Socket options: SO_REUSEADDR lets a restarted job listen on its port at once. TCP_NODELAY sends small messages
// without delay. TCP_USER_TIMEOUT makes the kernel stop resending to a vanished host after 30 s instead of about 15
// minutes. That is longer than the default of `run.heartbeat_seconds`, which decides on node failures.
#include "braid/control/socket.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::control {
namespace {

constexpr int kUserTimeoutMilliseconds = 30'000;
constexpr int kBacklog = 4096;  // enough for all nodes of a large job at once

void set_option(const Socket& socket, int level, int option, int value) {
  ::setsockopt(socket.descriptor(), level, option, &value, sizeof value);
}

void set_connection_options(const Socket& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMilliseconds);
}

bool only_not_now(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

Socket tcp_socket(const SocketAddress& address) {
  return Socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Calls getsockname(2) or getpeername(2).
SocketAddress end_of(int (*call)(int, sockaddr*, socklen_t*), int descriptor) {
  SocketAddress address;
  address.length = sizeof address.storage;
  const int failed = call(descriptor, reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return failed == 0 ? address : SocketAddress();
}

[[noreturn]] void throw_no_listener(const std::string& key, const SocketAddress& address) {
  const std::string where = text(address);
  if (errno == EADDRINUSE) throw ConfigError({{key, where, "another program listens there, perhaps another job", ""}});
  if (errno == EACCES) throw ConfigError({{key, where, "this user may not listen on that port", ""}});
  throw RunError(cat("cannot listen on ", where, ": ", std::strerror(errno)));
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  close();
  descriptor_ = other.release();
  return *this;
}

Socket Socket::listening(const std::string& key, const SocketAddress& address) {
  Socket socket = tcp_socket(address);
  if (!socket && errno == EAFNOSUPPORT) return socket;
  if (!socket) throw_no_listener(key, address);
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.storage.ss_family == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (::bind(socket.descriptor(), address.get(), address.length) != 0) {
    if (errno == EADDRNOTAVAIL) return {};
    throw_no_listener(key, address);
  }
  if (::listen(socket.descriptor(), kBacklog) != 0) throw_no_listener(key, address);
  return socket;
}

Socket Socket::connecting(const SocketAddress& address) {
  Socket socket = tcp_socket(address);
  if (!socket) return socket;
  set_connection_options(socket);
  int failed = 0;
  do {
    failed = ::connect(socket.descriptor(), address.get(), address.length);
  } while (failed != 0 && errno == EINTR);
  if (const int error = errno; failed != 0 && error != EINPROGRESS) {
    socket.close();
    errno = error;
  }
  return socket;
}

Socket Socket::accept() const {
  int descriptor = -1;
  do {
    descriptor = ::accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  } while (descriptor < 0 && (errno == EINTR || errno == ECONNABORTED));
  Socket socket(descriptor);
  const int error = errno;
  if (socket) set_connection_options(socket);
  errno = error;
  return socket;
}

void Socket::be_patient() const { set_option(*this, IPPROTO_TCP, TCP_USER_TIMEOUT, 0); }

std::string Socket::fault() const {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  return error == 0 ? "" : std::strerror(error);
}

std::string Socket::peer() const {
  const SocketAddress address = peer_end();
  return address.length == 0 ? "an unknown address" : text(address);
}

SocketAddress Socket::own_end() const { return end_of(::getsockname, descriptor_); }

SocketAddress Socket::peer_end() const { return end_of(::getpeername, descriptor_); }

bool Socket::acknowledged() const {
  int bytes = 0;
  return ::ioctl(descriptor_, SIOCOUTQ, &bytes) != 0 || bytes == 0;
}

IoResult Socket::receive(std::span<char> into) {
  ssize_t bytes = 0;
  do {
    bytes = ::recv(descriptor_, into.data(), into.size(), 0);
  } while (bytes < 0 && errno == EINTR);
  if (bytes > 0) return {static_cast<size_t>(bytes), ""};
  if (bytes == 0) return {0, "has closed its connection"};
  return only_not_now(errno) ? IoResult{} : IoResult{0, cat("has lost its connection: ", std::strerror(errno))};
}

IoResult Socket::send(std::span<const char> bytes) {
  ssize_t sent = 0;
  do {
    sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return {static_cast<size_t>(sent), ""};
  return only_not_now(errno) ? IoResult{} : IoResult{0, cat("has lost its connection: ", std::strerror(errno))};
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(release());
}

int Socket::release() { return std::exchange(descriptor_, -1); }

}  // namespace braid::control
