// Gloo from the LibTorch wheel: connections between all ranks of a group, for bytes and sums. Nothing outside this
// folder uses c10d.
//
// Everything on these connections is clear text.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "braid/comm/transport/wire.h"
#include "braid/control/key_value_store.h"

namespace braid::comm::gloo {

// A socket that peers connect to, and the thread that moves bytes. Any number of wires use it.
class Listener {
 public:
  virtual ~Listener() = default;
  // `address` is a name or number of this host; the port is any free one. Throws WireError.
  static std::shared_ptr<Listener> at(const std::string& address);
};

// Thread-safe.
class GlooWire final : public transport::Wire {
 public:
  struct Options {
    int rank = 0;
    int size = 2;
    std::shared_ptr<Listener> listener;
    control::KeyValueStore* store = nullptr;             // outlives the wire
    std::string prefix;                                  // of its keys
    double connect_seconds = 60;                         // time limit of connecting to all peers
    double sum_seconds = 300;                            // time limit of a sum
    std::function<bool()> given_up;                      // if it returns true, connecting ends with a WireError
    std::function<void(int peer)> on_peer = [](int) {};  // before connecting to each peer; -1 once all are connected
  };

  // Collective: blocks until all ranks are connected and a small exchange was correct. Throws WireError, which names
  // the version of LibTorch.
  explicit GlooWire(const Options& options);
  // Aborts. Peers may be gone.
  ~GlooWire() override;
  GlooWire(const GlooWire&) = delete;
  GlooWire& operator=(const GlooWire&) = delete;

  std::unique_ptr<Transfer> send(const void* bytes, int64_t count, int peer, int tag) override;
  std::unique_ptr<Transfer> receive(void* bytes, int64_t count, int peer, int tag) override;
  // Sums the tensors of all ranks in place, in Gloo's order. Collective, blocks. Throws WireError; after abort() within
  // some 3 s, later on a loaded host. Gloo may keep the tensor until `sum_seconds` are over, and still write to it if
  // its thread got no processor in the 3 s.
  void sum(const at::Tensor& tensor);

  void abort() override;

 private:
  struct Group;
  void test();
  const Options options_;
  std::unique_ptr<Group> group_;
};

}  // namespace braid::comm::gloo
