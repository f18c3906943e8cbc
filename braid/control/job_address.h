// The address on which node 0 of a job listens: the name or numeric address of a host, and a port. A name is resolved
// to numeric addresses.
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
// Returns `address` in the form that parse_job_address() accepts.
std::string text(const JobAddress& address);

// A numeric address in the form that system calls expect.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// Returns the numeric address and the port: "10.77.0.11:29500", "[::1]:29500".
std::string text(const SocketAddress& address);
// Returns 18 bytes, in network order and equal on all hosts: 16 bytes of IPv6 address (IPv4 as ::ffff:a.b.c.d) and 2
// bytes of port.
std::string endpoint_bytes(const SocketAddress& address);
// Returns true if only processes of the same host can connect to `address`.
bool is_loopback(const SocketAddress& address);
// Returns true if `address` stands for all interfaces of a host.
bool is_wildcard(const SocketAddress& address);

// The addresses of a host. If there are none, `fault` is the error.
struct ResolvedAddress {
  std::vector<SocketAddress> found;
  std::string fault;
};
// Resolves the host with getaddrinfo(3). May block, because the system may query the network.
ResolvedAddress resolve(const JobAddress& address);
// Returns the numeric address, without a port, from which this host connects to `other`. Other hosts reach this host at
// that address. Throws ConfigError about `key`, the option that named `other`, if `other` is unknown or unreachable.
std::string own_address(const std::string& key, const JobAddress& other);

}  // namespace braid::control
