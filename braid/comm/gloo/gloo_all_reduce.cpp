// A thread runs the queued all-reduces one at a time. It connects before the first.
#include "braid/comm/gloo/gloo_all_reduce.h"

#include <utility>

#include "braid/base/started_thread.h"

namespace braid::comm::gloo {

GlooAllReduce::GlooAllReduce(Connect connect, std::function<void(const std::string&)> failed)
    : connect_(std::move(connect)), failed_(std::move(failed)), thread_(started_thread("sums", [this] { run(); })) {}

GlooAllReduce::~GlooAllReduce() {
  stop();
  thread_.join();
}

void GlooAllReduce::add(const at::Tensor& tensor, std::function<void()> done) {
  const std::scoped_lock hold(mutex_);
  sums_.push_back({tensor, std::move(done)});
  changed_.notify_all();
}

void GlooAllReduce::stop() {
  std::unique_lock hold(mutex_);
  stopping_ = true;
  changed_.notify_all();
  if (wire_) wire_->abort();
  changed_.wait(hold, [this] { return !summing_; });
  std::deque<Sum>().swap(sums_);  // their callbacks keep the owner of this object alive
}

void GlooAllReduce::run() {
  std::string why;
  try {
    while (auto sum = next()) {
      wire_->sum(sum->tensor);
      sum->tensor.reset();
      sum->done();
      sum.reset();  // the callback keeps the owner of this object alive, which must not be destroyed by this thread
      const std::scoped_lock hold(mutex_);
      summing_ = false;
      changed_.notify_all();
    }
    return;
  } catch (const std::exception& error) {
    why = error.what();
  }
  {
    const std::scoped_lock hold(mutex_);
    summing_ = false;
    changed_.notify_all();
  }
  failed_(why);
}

std::optional<GlooAllReduce::Sum> GlooAllReduce::next() {
  std::unique_lock hold(mutex_);
  changed_.wait(hold, [this] { return stopping_ || !sums_.empty(); });
  if (!wire_ && !stopping_) {
    hold.unlock();
    auto wire = connect_();
    hold.lock();
    wire_ = std::move(wire);
  }
  if (stopping_) return std::nullopt;
  Sum sum = std::move(sums_.front());
  sums_.pop_front();
  summing_ = true;
  return sum;
}

}  // namespace braid::comm::gloo
