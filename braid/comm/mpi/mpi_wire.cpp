// The thread that makes all calls of MPI.
#include "braid/comm/mpi/mpi_wire.h"

#include <dlfcn.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/started_thread.h"
#include "braid/base/text.h"
#include "braid/comm/mpi/mpi_functions.h"
#include "braid/comm/mpi/mpi_request.h"

namespace braid::comm::mpi {
namespace {

using transport::WireError;

constexpr int64_t kMostBytes = 1 << 30;  // of one call of MPI; longer transfers are cut
// While the rank waits, its core is free: the thread polls without sleeping. MPI does not tell how far a long transfer
// has come, so while the rank computes the thread sleeps between polls, as long as something may move.
constexpr double kWaitSeconds = 2e-3;     // after the last end of a transfer it sleeps even while the rank waits
constexpr double kActiveSeconds = 20e-3;  // after the last end of a transfer its sleeps are short
constexpr std::chrono::microseconds kShortSleep(500), kLongSleep(1000);
constexpr double kNapSeconds = 0.05;
constexpr double kStuckSeconds = 2;  // after this time MPI stays in a call for ever

const MpiFunctions& loaded(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);  // MPI's own plug-ins need its symbols
  if (!library) throw WireError(cat("cannot load ", path, ": ", dlerror()));
  const auto entry = reinterpret_cast<MpiEntry>(dlsym(library, kMpiEntryName));
  if (!entry || entry()->version != MpiFunctions::kVersion) throw WireError(cat(path, " is of another braid"));
  return *entry();
}

}  // namespace

class MpiWire::Thread : public std::enable_shared_from_this<Thread> {
 public:
  explicit Thread(const Options& options) : options_(options), mpi_(loaded(options.plugin)) {}

  // Throws WireError.
  void start() {
    started_thread("MPI", [self = shared_from_this()] { self->run(); }).detach();
    std::unique_lock hold(mutex_);
    await(hold, options_.start_seconds, [this] { return phase_ != Phase::Starting || options_.given_up(); });
    if (phase_ == Phase::Starting) {
      phase_ = Phase::Over;
      if (options_.given_up()) throw WireError("given up");
      throw WireError(cat("is in MPI_Init of ", mpi_.library, " for ", exact(options_.start_seconds), " s"));
    }
    if (!error_.empty()) throw WireError(error_);
    hold.unlock();
    exchange_ranks();
  }

  std::unique_ptr<Transfer> post(bool sends, const void* bytes, int64_t count, int peer, int tag) {
    auto request = std::make_shared<Request>(sends, bytes, count, mpi_ranks_[peer], tag);
    {
      const std::scoped_lock hold(mutex_);
      if (phase_ != Phase::Running) throw WireError("aborted");
      posted_.push_back(request);
      num_posted_.store(posted_.size());
    }
    changed_.notify_all();
    return std::make_unique<RequestTransfer>(std::move(request));
  }

  void begin_wait() {
    if (num_waiting_.fetch_add(1) == 0) changed_.notify_all();
  }
  void end_wait() { num_waiting_.fetch_sub(1); }

  int max_tag() const { return max_tag_; }

  // Returns when MPI has ended, when the world has failed, or at the deadline.
  void finish() {
    std::unique_lock hold(mutex_);
    if (phase_ == Phase::Running) phase_ = Phase::Finishing;
    changed_.notify_all();
    await(hold, options_.finish_seconds, [this] { return phase_ == Phase::Over || options_.given_up(); });
  }

  // Returns when the thread uses no memory of transfers any more, or stays in a call of MPI.
  void abort() {
    std::unique_lock hold(mutex_);
    if (phase_ == Phase::Running || phase_ == Phase::Finishing) phase_ = Phase::Aborting;
    changed_.notify_all();
    const double end = now_seconds() + kStuckSeconds;
    while (phase_ == Phase::Aborting && now_seconds() < end) wait_for_change(hold);
  }

 private:
  enum class Phase {
    Starting,
    Running,
    Finishing,  // the thread waits for the last sends
    Ending,     // the thread is in MpiFunctions::finish(); no transfer is in flight
    Aborting,   // the thread leaves MPI as it is
    Over,
  };

  void wait_for_change(std::unique_lock<std::mutex>& hold) {
    changed_.wait_for(hold, std::chrono::duration<double>(kNapSeconds));
  }

  // Blocks until is_done() returns true, or for `seconds`. A long nap is one in which the process was stopped.
  void await(std::unique_lock<std::mutex>& hold, double seconds, const std::function<bool()>& is_done) {
    for (double waited = 0; !is_done() && waited < seconds;) {
      const double begin = now_seconds();
      wait_for_change(hold);
      waited += std::min(now_seconds() - begin, 2 * kNapSeconds);
    }
  }

  void enter(Phase phase) {
    const std::scoped_lock hold(mutex_);
    phase_ = phase;
    changed_.notify_all();
  }

  void run() {
    prctl(PR_SET_TIMERSLACK, 1000UL);  // ns; the default makes a sleep of 50 us one of 100
    const char* const problem = mpi_.start();
    {
      const std::scoped_lock hold(mutex_);
      if (phase_ == Phase::Over) return;
      if (problem) error_ = cat(mpi_.library, ": ", problem);
      if (!problem && mpi_.size() != options_.size)
        error_ = cat(mpi_.library, " has a world of ", mpi_.size(), " ranks, not ", options_.size);
      if (error_.empty()) own_mpi_rank_ = mpi_.rank();
      if (error_.empty()) max_tag_ = std::min(mpi_.max_tag(), kMaxTag);
      phase_ = error_.empty() ? Phase::Running : Phase::Over;
      changed_.notify_all();
    }
    if (phase_ == Phase::Over) return;
    move_all();
    const bool in_peace = end_transfers();
    for (const auto& request : in_flight_) request->end(Request::State::Aborted);
    in_flight_.clear();
    if (in_peace) mpi_.finish();
    enter(Phase::Over);
  }

  // Returns true if MPI can be ended. The last sends end when the peers have them; no message will match the last
  // receives.
  bool end_transfers() {
    const auto sends = [](const auto& request) { return request->sends; };
    while (phase_ == Phase::Finishing && std::ranges::any_of(in_flight_, sends)) test_all();
    {
      const std::scoped_lock hold(mutex_);
      if (phase_ != Phase::Finishing || options_.given_up()) return false;
      phase_ = Phase::Ending;
    }
    for (const auto& request : in_flight_) {
      for (void* handle : request->handles) mpi_.cancel(handle);
    }
    return true;
  }

  void move_all() {
    double moved = now_seconds();
    for (;;) {
      if (phase_ != Phase::Running) return take_posted();
      const bool any = num_posted_.load() > 0;
      if (any) take_posted();
      if (test_all() || any) {
        moved = now_seconds();
        continue;
      }
      const double idle = now_seconds() - moved;
      if (num_waiting_.load() > 0 && idle < kWaitSeconds) {
        std::this_thread::yield();
        continue;
      }
      std::unique_lock hold(mutex_);
      changed_.wait_for(hold, idle < kActiveSeconds ? kShortSleep : kLongSleep, [&] {
        return !posted_.empty() || phase_ != Phase::Running || (num_waiting_ > 0 && idle < kWaitSeconds);
      });
    }
  }

  void take_posted() {
    std::deque<std::shared_ptr<Request>> posted;
    {
      const std::scoped_lock hold(mutex_);
      posted.swap(posted_);
      num_posted_.store(0);
    }
    for (auto& request : posted) {
      if (phase_ == Phase::Aborting) {
        request->end(Request::State::Aborted);
      } else {
        begin(*request);
        in_flight_.push_back(std::move(request));
      }
    }
  }

  void begin(Request& request) {
    for (int64_t done = 0; done == 0 || done < request.count; done += kMostBytes) {
      const int64_t count = std::min(request.count - done, kMostBytes);
      const auto* bytes = static_cast<const std::byte*>(request.bytes) + done;
      void* const handle = request.sends
                               ? mpi_.send(bytes, count, request.peer, request.tag)
                               : mpi_.receive(const_cast<std::byte*>(bytes), count, request.peer, request.tag);
      if (!handle) return request.end(Request::State::Failed);
      request.handles.push_back(handle);
    }
  }

  // Returns true if a transfer has ended.
  bool test_all() {
    const size_t before = in_flight_.size();
    std::erase_if(in_flight_, [this](const auto& request) {
      std::erase_if(request->handles, [&](void* handle) {
        const int ended = mpi_.test(handle);
        if (ended < 0) request->end(Request::State::Failed);
        return ended != 0;
      });
      if (!request->handles.empty()) return false;
      request->end(Request::State::Done);
      return true;
    });
    return in_flight_.size() < before;
  }

  // A rank of the world may have another number in MPI's.
  void exchange_ranks() {
    const auto key = [&](int rank) { return cat(options_.prefix, "mpi/", rank); };
    options_.store->set(key(options_.rank), cat(own_mpi_rank_));
    for (int rank = 0; rank < options_.size; ++rank) {
      std::optional<std::string> value;
      while (!(value = options_.store->get(key(rank), kNapSeconds))) {
        if (options_.given_up()) throw WireError("given up");
      }
      mpi_ranks_.push_back(std::stoi(*value));
    }
  }

  const Options options_;
  const MpiFunctions& mpi_;
  std::vector<int> mpi_ranks_;  // by rank of the world
  int own_mpi_rank_ = 0, max_tag_ = kMaxTag;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<Phase> phase_ = Phase::Starting;
  std::string error_;
  std::deque<std::shared_ptr<Request>> posted_;
  std::atomic<size_t> num_posted_{0};
  std::atomic<int> num_waiting_{0};                  // threads of the rank that wait for something to arrive
  std::vector<std::shared_ptr<Request>> in_flight_;  // the thread's own
};

MpiWire::MpiWire(const Options& options) : thread_(std::make_shared<Thread>(options)) { thread_->start(); }

MpiWire::~MpiWire() { abort(); }

std::unique_ptr<transport::Wire::Transfer> MpiWire::send(const void* bytes, int64_t count, int peer, int tag) {
  return thread_->post(true, bytes, count, peer, tag);
}

std::unique_ptr<transport::Wire::Transfer> MpiWire::receive(void* bytes, int64_t count, int peer, int tag) {
  return thread_->post(false, bytes, count, peer, tag);
}

void MpiWire::begin_wait() { thread_->begin_wait(); }

void MpiWire::end_wait() { thread_->end_wait(); }

int MpiWire::max_tag() const { return thread_->max_tag(); }

void MpiWire::abort() { thread_->abort(); }

void MpiWire::finish() { thread_->finish(); }

}  // namespace braid::comm::mpi
