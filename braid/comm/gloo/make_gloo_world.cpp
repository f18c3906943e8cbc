// Connecting the ranks of a group, and the transport over their connections.
#include "braid/comm/gloo/make_gloo_world.h"

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/gloo/gloo_all_reduce.h"
#include "braid/comm/transport/grace.h"
#include "braid/comm/transport/process_communicator.h"
#include "braid/comm/transport/rendezvous.h"
#include "braid/comm/transport/wire_transport.h"

namespace braid::comm {
namespace gloo {
namespace {

using transport::Grace;
using transport::Group;
using transport::WireError;

constexpr double kConnectSeconds = 10;  // at most, once all ranks are there

class GlooTransport final : public transport::WireTransport {
 public:
  // Collective: blocks until all ranks have come. Throws CommError.
  explicit GlooTransport(const WorldOptions& options);
  ~GlooTransport() override { stop(); }

  void stop() override {
    stopping_ = true;
    WireTransport::stop();
  }

  bool has_own_sum(const Call& call) const override;
  std::unique_ptr<transport::OwnAllReduce> own_all_reduce(std::shared_ptr<const Group> group,
                                                          std::function<void()> stopped) override;

 private:
  using OnPeer = std::function<void(int world_rank)>;

  std::unique_ptr<GlooWire> connect_world();
  std::unique_ptr<GlooWire> connect_sums(const Group& group) const;
  std::unique_ptr<GlooWire> connect(const Group& group, const std::string& name, const OnPeer& on_peer) const;
  void report_closed(const Group& group, const std::string& why);
  bool given_up() const { return stopping_ || options_.self.failures->failure().has_value(); }

  const WorldOptions options_;
  std::shared_ptr<Listener> listener_;
  std::atomic<bool> stopping_{false};
};

GlooTransport::GlooTransport(const WorldOptions& options)
    : WireTransport(options.self.rank, options.self.size), options_(options) {
  if (options.self.size == 1) return;
  transport::rendezvous(options, "the start of Gloo", [this] {
    listener_ = Listener::at(options_.address);
    set_wire(connect_world());
  });
}

// Gloo rounds sums of narrow types at each step, and its maximum is not NaN where an input is.
bool GlooTransport::has_own_sum(const Call& call) const {
  const bool wide = call.type == at::kFloat || call.type == at::kDouble || call.type == at::kLong;
  return wide && call.op == ReduceOp::Sum;
}

std::unique_ptr<transport::OwnAllReduce> GlooTransport::own_all_reduce(std::shared_ptr<const Group> group,
                                                                       std::function<void()> stopped) {
  const auto failed = [this, group, stopped = std::move(stopped)](const std::string& why) {
    stopped();
    report_closed(*group, why);
  };
  try {
    return std::make_unique<GlooAllReduce>([this, group] { return connect_sums(*group); }, failed);
  } catch (const RunError& error) {
    options_.self.failures->fail({options_.self.rank, options_.self.rank, error.what()});
    return nullptr;
  }
}

// An activity of its own, with which the hang detector is patient: connecting has a deadline, and its error says more.
std::unique_ptr<GlooWire> GlooTransport::connect_world() {
  int to = -1;
  const auto on_peer = [&](int rank) {
    if (std::exchange(to, rank) != rank && options_.self.activity)
      options_.self.activity->begin_storage(rank < 0 ? "testing its connections" : cat("connecting to rank ", rank));
  };
  if (options_.self.activity) options_.self.activity->begin_storage("connecting to all ranks");
  try {
    return connect(transport::world_group(options_), "world", on_peer);
  } catch (const WireError& error) {
    const std::string whom = to < 0 ? "all ranks" : cat("rank ", to);
    options_.self.failures->fail(
        {-1, options_.self.rank, cat("rank ", options_.self.rank, " cannot connect to ", whom, ": ", error.what())});
    throw;
  }
}

// Called on the thread of the sums, while the rank's own thread computes or waits for them.
std::unique_ptr<GlooWire> GlooTransport::connect_sums(const Group& group) const {
  BackgroundActivity connecting(options_.self.activity);
  const auto on_peer = [&](int rank) {
    connecting.begin(
        cat(rank < 0 ? "testing its connections" : cat("connecting to rank ", rank), " for sums on ", group.name));
  };
  return connect(group, cat("sums/", group.id), on_peer);
}

// Collective of the group. The wire keeps its options, and Gloo may ask for the address of a peer later: `on_peer` is
// called during the start only.
std::unique_ptr<GlooWire> GlooTransport::connect(const Group& group, const std::string& name,
                                                 const OnPeer& on_peer) const {
  const std::string prefix = cat(options_.prefix, name, "/");
  transport::meet(options_, group, prefix, "Gloo", [this] { return given_up(); });
  const auto starting = std::make_shared<const OnPeer>(on_peer);
  const auto while_starting = [held = std::weak_ptr(starting), ranks = group.world_ranks](int peer) {
    if (const auto on = held.lock()) (*on)(peer < 0 ? peer : ranks.at(static_cast<size_t>(peer)));
  };
  return std::make_unique<GlooWire>(
      GlooWire::Options{.rank = group.rank,
                        .size = group.size(),
                        .listener = listener_,
                        .store = options_.store,
                        .prefix = prefix,
                        .connect_seconds = std::min(options_.self.deadline_seconds, kConnectSeconds),
                        .sum_seconds = options_.self.deadline_seconds,
                        .given_up = [this] { return given_up(); },
                        .on_peer = while_starting});
}

// It is not known here which connection of the group was closed, so no rank is named alone.
void GlooTransport::report_closed(const Group& group, const std::string& why) {
  for (Grace grace(Grace::kOfSums); !given_up() && !peer_has_left() && grace.lasts();) sleep(events(), Grace::kNap);
  if (given_up() || peer_has_left()) return;
  std::vector<std::string> ranks;
  for (const int rank : group.world_ranks) ranks.push_back(cat(rank));
  options_.self.failures->fail({-1, options_.self.rank,
                                cat("rank ", options_.self.rank, " cannot sum on ", group.name, " with all of rank ",
                                    joined(ranks), ": ", printable(why, 300))});
}

}  // namespace
}  // namespace gloo

std::unique_ptr<Communicator> make_gloo_world(const WorldOptions& options, Queue& queue) {
  return transport::ProcessCommunicator::of_world(std::make_unique<gloo::GlooTransport>(options),
                                                  transport::checked_self(options), queue);
}

}  // namespace braid::comm
