// A transfer over MPI, which the thread of MPI and the thread that waits for it share.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "braid/comm/transport/wire.h"

namespace braid::comm::mpi {

// A send or receive. States other than Open are final.
struct Request {
  enum class State { Open, Done, Failed, Aborted };

  bool sends;
  const void* bytes;
  int64_t count;
  int peer;  // rank in MPI's world
  int tag;
  std::vector<void*> handles = {};  // of MPI, in flight; used by the thread only
  std::atomic<State> state = State::Open;

  void end(State with) {
    State open = State::Open;
    if (state.compare_exchange_strong(open, with)) state.notify_all();
  }
};

class RequestTransfer final : public transport::Wire::Transfer {
 public:
  explicit RequestTransfer(std::shared_ptr<Request> request) : request_(std::move(request)) {}
  void wait() override {
    request_->state.wait(Request::State::Open);
    if (request_->state == Request::State::Failed) throw transport::WireError("MPI reports an error");
    if (request_->state == Request::State::Aborted) throw transport::WireError("aborted");
  }
  void abort() override { request_->end(Request::State::Aborted); }

 private:
  const std::shared_ptr<Request> request_;
};

}  // namespace braid::comm::mpi
