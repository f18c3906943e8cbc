// Uses c10d::ProcessGroupGloo of the pinned LibTorch wheel, which contains no headers of Gloo. This file declares the
// types of Gloo that c10d's header names; the headers that it includes are empty files (CMakeLists.txt). This file
// calls only c10d's own functions.
//
// Three properties of Gloo matter. A wait that times out closes all connections of the group, so transfers wait without
// a timeout outside abort() and test(). A message that is longer than its receive ends the process, so ranks agree on
// sizes first (match_table.h). A message that is under way when its connection is closed is forgotten, and what waits
// for it waits for the whole timeout: each transfer has an abort of its own, and a sum is left behind.
#include "braid/comm/gloo/gloo_wire.h"

#include <ATen/ops/from_blob.h>
#include <torch/version.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

#include "braid/base/text.h"
#include "braid/comm/gloo/peer_store.h"

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};
namespace rendezvous {
class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) = 0;
};
}  // namespace rendezvous
namespace transport {
class Device;
class UnboundBuffer;
}  // namespace transport

}  // namespace gloo

#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace braid::comm::gloo {
namespace {

using transport::WireError;

constexpr std::chrono::milliseconds kForEver = std::chrono::hours(24 * 365 * 10);
// After an abort a sum fails at its next message. One that has not failed after so many naps waits for a message that
// Gloo has forgotten.
constexpr std::chrono::milliseconds kNap(250);
constexpr int kNapsOfFailing = 12;
constexpr int kAbortTag = GlooWire::kMaxTag, kTestTag = GlooWire::kMaxTag + 1;

// Returns the message without its source location: "[/pytorch/.../pair.cc:547] Connection closed by peer".
std::string without_place(const std::string& said) {
  const size_t end = said.starts_with('[') ? said.find("] ") : std::string::npos;
  return end == std::string::npos ? said : said.substr(end + 2);
}

[[noreturn]] void rethrow_as_gloo_error(const std::string& doing) {
  try {
    throw;
  } catch (const c10::Error& error) {
    throw WireError(cat(doing, without_place(error.what_without_backtrace())));
  } catch (const std::exception& error) {
    throw WireError(cat(doing, without_place(error.what())));
  }
}

std::chrono::milliseconds whole_milliseconds(double seconds) {
  const std::chrono::duration<double> most = kForEver;
  return std::chrono::ceil<std::chrono::milliseconds>(std::min(std::chrono::duration<double>(seconds), most));
}

// A scope that blocks SIGPIPE, because Gloo writes without MSG_NOSIGNAL to connections that a peer may have closed.
// Threads that Gloo starts in it inherit the block.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutPipeSignal() {
    if (sigismember(&before_, SIGPIPE)) return;
    const timespec now{};
    while (sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
};

// Calls into Gloo. Turns every exception into a WireError.
template <class Call>
auto guarded(const Call& call, const std::string& doing = "") {
  const WithoutPipeSignal quiet;
  try {
    return call();
  } catch (...) {
    rethrow_as_gloo_error(doing);
  }
}

struct DeviceListener final : Listener {
  explicit DeviceListener(std::shared_ptr<::gloo::transport::Device> opened) : device(std::move(opened)) {}
  const std::shared_ptr<::gloo::transport::Device> device;
};

class WorkTransfer final : public GlooWire::Transfer {
 public:
  explicit WorkTransfer(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
  void wait() override {
    guarded([this] {
      if (!work_->wait(kForEver)) throw WireError("aborted");  // the default is the timeout of the group
    });
  }
  void abort() override { work_->abort(); }

 private:
  const c10::intrusive_ptr<c10d::Work> work_;
};

// Begins an all-reduce. c10d records all collectives of the process in one recorder, and looks up the group there
// before it takes the recorder's lock. So only one call runs at a time.
c10::intrusive_ptr<c10d::Work> begun(c10d::ProcessGroupGloo& gloo, std::vector<at::Tensor>& tensors) {
  static std::mutex recorder;
  const std::scoped_lock hold(recorder);
  return gloo.allreduce(tensors);
}

// Returns true if `work` ends within `time`, well or not.
bool ends_within(c10d::Work& work, std::chrono::milliseconds time) {
  try {
    work.wait(time);
  } catch (const std::exception&) {
  }
  return work.isCompleted();
}

std::vector<at::Tensor> bytes_at(const void* bytes, int64_t count) {
  return {at::from_blob(const_cast<void*>(bytes), {count}, at::kByte)};
}

}  // namespace

std::shared_ptr<Listener> Listener::at(const std::string& address) {
  return guarded(
      [&]() -> std::shared_ptr<Listener> {
        return std::make_shared<DeviceListener>(c10d::ProcessGroupGloo::createDeviceForHostname(address));
      },
      cat("cannot listen on ", address, ": "));
}

struct GlooWire::Group {
  ~Group();
  c10::intrusive_ptr<c10d::ProcessGroupGloo> gloo;
  std::once_flag aborting;
  std::atomic<bool> is_aborted{false}, has_left_sum{false};
};

// The destructor of Gloo waits for its sums. Without a thread for it, the group is never destroyed.
GlooWire::Group::~Group() {
  if (!has_left_sum) return;
  try {
    std::thread([left = gloo.release()] { c10::intrusive_ptr<c10d::ProcessGroupGloo>::reclaim(left); }).detach();
  } catch (const std::exception&) {
  }
}

GlooWire::GlooWire(const Options& options) : options_(options), group_(std::make_unique<Group>()) {
  const std::string doing = cat("Gloo of LibTorch ", TORCH_VERSION, " does not start: ");
  guarded(
      [&] {
        auto chosen = c10d::ProcessGroupGloo::Options::create(whole_milliseconds(options_.connect_seconds));
        chosen->devices.push_back(static_cast<DeviceListener&>(*options_.listener).device);
        chosen->threads = 1;
        group_->gloo =
            c10::make_intrusive<c10d::ProcessGroupGloo>(peer_store(options_), options_.rank, options_.size, chosen);
        options_.on_peer(-1);
        // Ranks that cannot connect to each other time out first, while the other ranks wait for them in test().
        group_->gloo->setTimeout(whole_milliseconds(2 * options_.connect_seconds));
        test();
        group_->gloo->setTimeout(whole_milliseconds(options_.sum_seconds));
      },
      doing);
}

GlooWire::~GlooWire() { abort(); }

std::unique_ptr<GlooWire::Transfer> GlooWire::send(const void* bytes, int64_t count, int peer, int tag) {
  return guarded([&] {
    auto tensors = bytes_at(bytes, count);
    return std::make_unique<WorkTransfer>(group_->gloo->send(tensors, peer, tag));
  });
}

std::unique_ptr<GlooWire::Transfer> GlooWire::receive(void* bytes, int64_t count, int peer, int tag) {
  return guarded([&] {
    auto tensors = bytes_at(bytes, count);
    return std::make_unique<WorkTransfer>(group_->gloo->recv(tensors, peer, tag));
  });
}

void GlooWire::sum(const at::Tensor& tensor) {
  guarded([&] {
    std::vector<at::Tensor> tensors = {tensor};
    const auto work = begun(*group_->gloo, tensors);
    for (int naps = 0; !ends_within(*work, kNap);) {
      if (!group_->is_aborted || ++naps < kNapsOfFailing) continue;
      group_->has_left_sum = true;
      throw WireError("aborted");
    }
    work->wait();
  });
}

// Posts a receive from each peer that times out, which closes the connections. A peer whose connection is already
// closed accepts none.
void GlooWire::abort() {
  std::call_once(group_->aborting, [this] {
    const WithoutPipeSignal quiet;
    char nothing = 0;
    for (int peer = 0; group_->gloo && peer < options_.size; ++peer) {
      if (peer == options_.rank) continue;
      try {
        auto tensors = bytes_at(&nothing, 1);
        group_->gloo->recv(tensors, peer, kAbortTag)->wait(std::chrono::milliseconds(1));
      } catch (const std::exception&) {
      }
    }
    group_->is_aborted = true;
  });
}

// Checks what the transport relies on: a receive may be longer than its message, and an all-reduce returns the sum.
void GlooWire::test() {
  const int next = (options_.rank + 1) % options_.size, last = (options_.rank + options_.size - 1) % options_.size;
  const int64_t mine = 1 + options_.rank;
  int64_t got[2] = {0, -1};
  auto here = bytes_at(got, sizeof got), there = bytes_at(&mine, sizeof mine);
  const auto received = group_->gloo->recv(here, last, kTestTag), sent = group_->gloo->send(there, next, kTestTag);
  received->wait();  // times out after twice `connect_seconds`
  sent->wait();
  int64_t total = mine;
  sum(at::from_blob(&total, {1}, at::kLong));
  const int64_t n = options_.size;
  if (got[0] != 1 + last || got[1] != -1 || total != n * (n + 1) / 2) {
    throw WireError(cat("its test gave ", got[0], " ", got[1], " ", total, " for ", 1 + last, " -1 ", n * (n + 1) / 2));
  }
}

}  // namespace braid::comm::gloo
