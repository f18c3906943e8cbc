// A wire over MPI. One thread makes all calls of MPI. It polls the transfers in flight, and sleeps briefly when none
// makes progress.
//
// MPI may stay in a call for ever when a peer has died, so a rank that fails leaves by _exit, without MPI_Finalize.
// Everything that MPI sends is clear text.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "braid/comm/transport/wire.h"
#include "braid/control/key_value_store.h"

namespace braid::comm::mpi {

// Thread-safe.
class MpiWire final : public transport::Wire {
 public:
  struct Options {
    int rank = 0;
    int size = 2;
    std::string plugin;                       // path of the plug-in
    control::KeyValueStore* store = nullptr;  // has each rank's number in MPI's world; used by the constructor only
    std::string prefix;                       // of its keys
    std::function<bool()> given_up;           // if it returns true, the start and the end do not wait any longer
    double start_seconds = kStartSeconds;     // deadline of MPI_Init
    double finish_seconds = kFinishSeconds;   // deadline of finish()
  };
  // All ranks have arrived before MPI_Init, which then connects them: on a thousand hosts that takes a minute.
  static constexpr double kStartSeconds = 300;
  static constexpr double kFinishSeconds = 10;

  // Collective: blocks until all ranks have initialised MPI. Throws WireError, also if this rank is in MPI_Init at the
  // deadline. Time in which the process is stopped does not count. A process constructs at most one.
  explicit MpiWire(const Options& options);
  // Aborts unless finish() was called.
  ~MpiWire() override;

  std::unique_ptr<Transfer> send(const void* bytes, int64_t count, int peer, int tag) override;
  std::unique_ptr<Transfer> receive(void* bytes, int64_t count, int peer, int tag) override;
  int max_tag() const override;
  void begin_wait() override;
  void end_wait() override;
  // Returns when the thread makes no more calls of MPI, or is stuck in one.
  void abort() override;
  // Ends MPI. Collective: blocks until all ranks end MPI. At the deadline it leaves the thread in MPI_Finalize, for the
  // process to end by _exit. REQUIRES: no peer sends anything any more.
  void finish();

 private:
  class Thread;
  const std::shared_ptr<Thread> thread_;  // its thread may be in a call of MPI for ever, so it owns this too
};

}  // namespace braid::comm::mpi
