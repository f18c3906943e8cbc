// Gloo as the LibTorch wheel carries it: connections between all ranks of a group, over which bytes and sums go. The
// only place that knows c10d.
//
// Everything on these connections is clear text.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "braid/control/key_value_store.h"

namespace braid::comm::gloo {

// What Gloo says when a connection is closed, an engine was aborted or its peers were not found.
class EngineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A socket that peers connect to and the thread that moves bytes, for any number of engines.
class Listener {
 public:
  virtual ~Listener() = default;
  // At `address`, a name or number of this host, on any free port. Throws EngineError.
  static std::shared_ptr<Listener> at(const std::string& address);
};

// Thread-safe.
class Engine {
 public:
  static constexpr int kMaxTag = 1 << 30;

  struct Options {
    int rank = 0;
    int size = 2;
    std::shared_ptr<Listener> listener;
    control::KeyValueStore* store = nullptr;  // outlives the engine
    std::string prefix;                       // of its keys
    double connect_seconds = 60;              // that connecting to all peers may take
    double sum_seconds = 300;                 // that a sum may take
    std::function<bool()> given_up;           // asked while peers are waited for: connecting ends with a EngineError
    std::function<void(int peer)> on_peer = [](int) {};  // before connecting to each peer; -1 once all are connected
  };

  // A send or receive in flight; destroyed when it has ended, when the peer never does its part, or after abort().
  class Transfer {
   public:
    virtual ~Transfer() = default;
    virtual void wait() = 0;  // throws EngineError
    // Ends a wait, now or later. A receive that is in the middle of its bytes does not notice Engine::abort().
    virtual void abort() = 0;
  };

  // Collective: blocks until all ranks are connected and a small exchange has come out right. Throws EngineError, which
  // names the version of LibTorch.
  explicit Engine(const Options& options);
  // Aborts. Peers may be gone.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Neither waits. The peer's receive with the same tag gets the bytes, in the order of sends; it has room for as many
  // or more. A send of any size ends when that receive is there. 0 <= tag < kMaxTag; never to itself.
  std::unique_ptr<Transfer> send(const void* bytes, int64_t count, int peer, int tag);
  std::unique_ptr<Transfer> receive(void* bytes, int64_t count, int peer, int tag);
  // The sum of all ranks' tensors, in Gloo's order, in place. Collective, blocks.
  void sum(const at::Tensor& tensor);

  // Closes all connections: no memory is read or written from here on, and whatever waits throws EngineError, but for a
  // receive or a sum in the middle of its last bytes: that waits for Transfer::abort() or for Options::sum_seconds.
  void abort();

 private:
  struct Group;
  void test();
  const Options options_;
  std::unique_ptr<Group> group_;
};

}  // namespace braid::comm::gloo
