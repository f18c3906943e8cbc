// The address on which node 0 of a job listens: a host's name or number and a port, and the numeric addresses behind
// it.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

namespace braid::control {

struct JobAddress {
  std::string host;  // IPv6 without brackets
  int port = 0;
};

// Parses "HOST:PORT" or "[IPV6]:PORT". Throws ConfigError about `key`.
JobAddress parse_job_address(const std::string& key, const std::string& text);
// The way back.
std::string text(const JobAddress& address);

// An address as system calls take it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// "10.77.0.11:29500", "[::1]:29500".
std::string text(const SocketAddress& address);
// The same bytes on all hosts: 16 of the number (of IPv4 as IPv6 holds it), 2 of the port, in network order.
std::string endpoint_bytes(const SocketAddress& address);
// Returns true if only programs of this host reach it.
bool is_loopback(const SocketAddress& address);
// Returns true if it stands for all interfaces of a host.
bool is_wildcard(const SocketAddress& address);

// Resolved addresses; if there are none, `fault` has the system's message.
struct ResolvedAddress {
  std::vector<SocketAddress> found;
  std::string fault;
};
// Asks the system, which may ask the network and take its time.
ResolvedAddress resolve(const JobAddress& address);
// As other hosts reach this one: the numeric address, without a port, from which it would speak to `other`. Throws
// ConfigError about `key`, which has named that.
std::string own_address(const std::string& key, const JobAddress& other);

}  // namespace braid::control
