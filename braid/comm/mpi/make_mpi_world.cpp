// The transport over MPI.
#include "braid/comm/mpi/make_mpi_world.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/mpi/mpi_plugin_file.h"
#include "braid/comm/mpi/mpi_wire.h"
#include "braid/comm/transport/process_communicator.h"
#include "braid/comm/transport/rendezvous.h"
#include "braid/comm/transport/wire_transport.h"

namespace braid::comm {
namespace mpi {
namespace {

class MpiTransport final : public transport::WireTransport {
 public:
  // Collective: blocks until all ranks have come. Throws CommError.
  explicit MpiTransport(const WorldOptions& options)
      : WireTransport(options.self.rank, options.self.size), options_(options) {
    if (options.self.size == 1) return;
    transport::rendezvous(options, "the start of MPI", [&] {
      transport::meet(options, transport::world_group(options), cat(options.prefix, "mpi/"), "MPI",
                      [this] { return given_up(); });
      if (options.self.activity) options.self.activity->begin_storage("starting MPI");
      auto wire = std::make_unique<MpiWire>(
          MpiWire::Options{.rank = options.self.rank,
                           .size = options.self.size,
                           .plugin = find_plugin().path,
                           .store = options.store,
                           .prefix = options.prefix,
                           .given_up = [failures = options.self.failures] { return failures->failure().has_value(); },
                           .start_seconds = std::min(options.self.deadline_seconds, MpiWire::kStartSeconds)});
      wire_ = wire.get();
      set_wire(std::move(wire));
    });
  }
  ~MpiTransport() override { stop(); }

  void end() override {
    WireTransport::end();
    has_ended_ = true;
  }

  // MPI ends only if all ranks end it.
  void stop() override {
    if (wire_ && has_ended_ && !given_up()) {
      BackgroundActivity ending(options_.self.activity);
      ending.begin("ending MPI");
      wire_->finish();
    }
    WireTransport::stop();
  }

 private:
  bool given_up() const { return options_.self.failures->failure().has_value(); }

  const WorldOptions options_;
  MpiWire* wire_ = nullptr;  // owned by the base; null in a world of one
  std::atomic<bool> has_ended_{false};
};

}  // namespace
}  // namespace mpi

std::unique_ptr<Communicator> make_mpi_world(const WorldOptions& options, Queue& queue) {
  return transport::ProcessCommunicator::of_world(std::make_unique<mpi::MpiTransport>(options),
                                                  transport::checked_self(options), queue);
}

}  // namespace braid::comm
