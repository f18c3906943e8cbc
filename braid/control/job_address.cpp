// Parses hosts, ports and brackets, resolves names with getaddrinfo(3), and recognizes loopback and wildcard addresses.
// IPv4 addresses mapped into IPv6 count as IPv4.
#include "braid/control/job_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::control {
namespace {

std::optional<int> port_of(std::string_view digits) {
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port < 1 || port > 65535) return std::nullopt;
  return port;
}

// Returns the IPv4 address in host byte order, also if it is mapped into IPv6; nullopt for other addresses.
std::optional<uint32_t> ipv4_number(const SocketAddress& address) {
  uint32_t number = 0;
  if (address.storage.ss_family == AF_INET) {
    number = reinterpret_cast<const sockaddr_in&>(address.storage).sin_addr.s_addr;
  } else {
    const in6_addr& wide = reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(&wide)) return std::nullopt;
    std::memcpy(&number, wide.s6_addr + 12, sizeof number);
  }
  return ntohl(number);
}

const in6_addr* ipv6_number(const SocketAddress& address) {
  if (address.storage.ss_family != AF_INET6) return nullptr;
  return &reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr;
}

}  // namespace

JobAddress parse_job_address(const std::string& key, const std::string& text) {
  const size_t colon = text.rfind(':');
  const bool cut = colon != std::string::npos;
  std::string host = text.substr(0, cut ? colon : text.size());
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto port = cut ? port_of(std::string_view(text).substr(colon + 1)) : std::nullopt;
  const bool is_host = !host.empty() && host.find_first_of(bracketed ? " \t[]" : " \t:[]") == std::string::npos;
  if (port && is_host) return {host, *port};
  throw ConfigError({{key, text, "must be HOST:PORT, or [ADDRESS]:PORT of IPv6, with a port from 1 to 65535", ""}});
}

std::string text(const JobAddress& address) {
  const bool wide = address.host.find(':') != std::string::npos;
  return wide ? cat("[", address.host, "]:", address.port) : cat(address.host, ":", address.port);
}

std::string text(const SocketAddress& address) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  const int failed = ::getnameinfo(address.get(), address.length, host, sizeof host, port, sizeof port,
                                   NI_NUMERICHOST | NI_NUMERICSERV);
  if (failed != 0) return "an unknown address";
  return address.storage.ss_family == AF_INET6 ? cat("[", host, "]:", port) : cat(host, ":", port);
}

std::string endpoint_bytes(const SocketAddress& address) {
  std::string bytes(18, '\0');
  if (address.storage.ss_family == AF_INET) {
    const auto& narrow = reinterpret_cast<const sockaddr_in&>(address.storage);
    bytes.replace(10, 2, "\xff\xff");
    std::memcpy(bytes.data() + 12, &narrow.sin_addr, 4);
    std::memcpy(bytes.data() + 16, &narrow.sin_port, 2);
  } else if (const in6_addr* wide = ipv6_number(address)) {
    std::memcpy(bytes.data(), wide, 16);
    std::memcpy(bytes.data() + 16, &reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port, 2);
  }
  return bytes;
}

bool is_loopback(const SocketAddress& address) {
  if (const auto number = ipv4_number(address)) return *number >> 24 == 127;
  const in6_addr* wide = ipv6_number(address);
  return wide != nullptr && IN6_IS_ADDR_LOOPBACK(wide);
}

bool is_wildcard(const SocketAddress& address) {
  if (const auto number = ipv4_number(address)) return *number == 0;
  const in6_addr* wide = ipv6_number(address);
  return wide != nullptr && IN6_IS_ADDR_UNSPECIFIED(wide);
}

ResolvedAddress resolve(const JobAddress& address) {
  addrinfo wanted{}, *first = nullptr;
  wanted.ai_socktype = SOCK_STREAM;
  const int failed = ::getaddrinfo(address.host.c_str(), cat(address.port).c_str(), &wanted, &first);
  if (failed != 0) {
    const char* words = failed == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(failed);
    return {{}, cat(address.host, " is no known host: ", words)};
  }
  ResolvedAddress resolved;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    SocketAddress& found = resolved.found.emplace_back();
    std::memcpy(&found.storage, at->ai_addr, at->ai_addrlen);
    found.length = at->ai_addrlen;
  }
  ::freeaddrinfo(first);
  if (resolved.found.empty()) resolved.fault = cat(address.host, " has no address of IPv4 or IPv6");
  return resolved;
}

std::string own_address(const std::string& key, const JobAddress& other) {
  const ResolvedAddress resolved = resolve(other);
  if (resolved.found.empty()) throw ConfigError({{key, text(other), resolved.fault, ""}});
  const SocketAddress& to = resolved.found.front();
  const int descriptor = ::socket(to.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  SocketAddress own;
  own.length = sizeof own.storage;
  const bool known = ::connect(descriptor, to.get(), to.length) == 0 &&
                     ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own.storage), &own.length) == 0;
  ::close(descriptor);
  if (!known) throw ConfigError({{key, text(other), "must be a host that can be reached from here", ""}});
  char name[NI_MAXHOST];
  ::getnameinfo(own.get(), own.length, name, sizeof name, nullptr, 0, NI_NUMERICHOST);
  return name;
}

}  // namespace braid::control
