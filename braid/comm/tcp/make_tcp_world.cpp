// Connecting each rank to all others: to those before it, and from those behind it.
#include "braid/comm/tcp/make_tcp_world.h"

#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/tcp/tcp_transport.h"
#include "braid/comm/transport/process_communicator.h"
#include "braid/comm/transport/rendezvous.h"
#include "braid/comm/transport/wire.h"
#include "braid/control/job_address.h"

namespace braid::comm {
namespace tcp {
namespace {

using control::Socket;
using transport::WireError;

constexpr double kConnectSeconds = 10;  // at most, once all ranks are there
constexpr double kNapSeconds = 0.05;

using Secret = std::array<char, 16>;

// The first bytes of a connection, from the rank that connects.
struct Hello {
  Secret secret;  // of the rank that listens
  int32_t rank;   // that connects
};

// A connection whose hello has not arrived in full.
struct Caller {
  Socket socket;
  Hello hello = {};
  size_t received = 0;
};

class Connecting {
 public:
  explicit Connecting(const WorldOptions& options)
      : options_(options),
        end_(now_seconds() + std::min(options.self.deadline_seconds, kConnectSeconds)),
        sockets_(options.self.size) {
    const auto addresses = control::resolve({options.address, 0});
    if (addresses.found.empty()) throw WireError(cat("cannot listen on ", options.address, ": ", addresses.fault));
    listener_ = Socket::listening("address", addresses.found[0]);
    if (!listener_) throw WireError(cat("cannot listen on ", options.address, ": it is no address of this host"));
    if (getrandom(secret_.data(), secret_.size(), 0) != static_cast<ssize_t>(secret_.size())) {
      throw WireError("the system has no random numbers");
    }
  }

  // Returns the sockets by rank.
  std::vector<Socket> connect() {
    if (options_.self.activity) options_.self.activity->begin_storage("connecting to all ranks");
    options_.store->set(key(options_.self.rank),
                        std::string(secret_.begin(), secret_.end()) + control::text(listener_.own_end()));
    for (int rank = 0; rank < options_.self.rank; ++rank) call(rank);
    while (!missing().empty()) answer();
    return std::move(sockets_);
  }

 private:
  std::string key(int rank) const { return cat(options_.prefix, "tcp/", rank); }
  // Returns the ranks that are not connected.
  std::vector<std::string> missing() const {
    std::vector<std::string> ranks;
    for (int rank = 0; rank < options_.self.size; ++rank) {
      if (rank != options_.self.rank && !sockets_[rank]) ranks.push_back(cat(rank));
    }
    return ranks;
  }

  void look_at_limits(const std::string& doing) const {
    if (options_.self.failures->failure()) throw WireError("given up");
    if (now_seconds() > end_) throw WireError(cat(doing, " took too long"));
  }

  void call(int rank) {
    const std::string doing = cat("connecting to rank ", rank);
    if (options_.self.activity) options_.self.activity->begin_storage(doing);
    std::optional<std::string> value;
    while (!(value = options_.store->get(key(rank), kNapSeconds))) look_at_limits(doing);
    Hello hello{.secret = {}, .rank = options_.self.rank};
    if (value->size() <= hello.secret.size()) throw WireError(cat("rank ", rank, " has published no address"));
    std::copy_n(value->begin(), hello.secret.size(), hello.secret.begin());
    const std::string address = value->substr(hello.secret.size());
    const auto found = control::resolve(control::parse_job_address("address", address)).found;
    Socket socket = found.empty() ? Socket() : Socket::connecting(found[0]);
    if (!socket) throw WireError(cat("cannot connect to rank ", rank, " at ", address, ": ", std::strerror(errno)));
    for (pollfd ready{socket.descriptor(), POLLOUT, 0}; poll(&ready, 1, static_cast<int>(kNapSeconds * 1e3)) <= 0;) {
      look_at_limits(doing);
    }
    const std::string fault = socket.fault();
    if (!fault.empty()) throw WireError(cat("cannot connect to rank ", rank, " at ", address, ": ", fault));
    const auto sent = socket.send({reinterpret_cast<const char*>(&hello), sizeof hello});
    if (sent.bytes != sizeof hello) throw WireError(cat("cannot connect to rank ", rank, " at ", address));
    sockets_[rank] = std::move(socket);
  }

  // Accepts connections and reads hellos, until something has come or a nap is over.
  void answer() {
    look_at_limits(cat("waiting for the connection of rank ", joined(missing())));
    std::vector<pollfd> watched{{listener_.descriptor(), POLLIN, 0}};
    for (const Caller& caller : callers_) watched.push_back({caller.socket.descriptor(), POLLIN, 0});
    poll(watched.data(), watched.size(), static_cast<int>(kNapSeconds * 1e3));
    while (Socket socket = listener_.accept()) callers_.push_back({std::move(socket)});
    std::erase_if(callers_, [this](Caller& caller) { return take_hello(caller); });
  }

  // Returns true if the caller is a rank now, or is turned away.
  bool take_hello(Caller& caller) {
    auto* const bytes = reinterpret_cast<char*>(&caller.hello);
    const auto [received, closed] = caller.socket.receive({bytes + caller.received, sizeof(Hello) - caller.received});
    if (!closed.empty()) return true;
    caller.received += received;
    if (caller.received < sizeof(Hello)) return false;
    const auto& [secret, rank] = caller.hello;
    const bool expected =
        secret == secret_ && rank > options_.self.rank && rank < options_.self.size && !sockets_[rank];
    if (expected) sockets_[rank] = std::move(caller.socket);
    return true;
  }

  const WorldOptions& options_;
  const double end_;
  std::vector<Socket> sockets_;  // by rank
  Socket listener_;
  Secret secret_;
  std::vector<Caller> callers_;
};

std::unique_ptr<transport::Transport> connected(const WorldOptions& options) {
  std::vector<Socket> sockets(options.self.size);
  if (options.self.size > 1) {
    transport::rendezvous(options, "the start of TCP", [&] {
      transport::meet(options, transport::world_group(options), cat(options.prefix, "tcp/"), "TCP",
                      [&] { return options.self.failures->failure().has_value(); });
      sockets = Connecting(options).connect();
    });
  }
  return std::make_unique<TcpTransport>(options.self.rank, std::move(sockets));
}

}  // namespace
}  // namespace tcp

std::unique_ptr<Communicator> make_tcp_world(const WorldOptions& options, Queue& queue) {
  const RankOptions& self = transport::checked_self(options);
  return transport::ProcessCommunicator::of_world(tcp::connected(options), self, queue);
}

}  // namespace braid::comm
