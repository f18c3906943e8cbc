// Waiting, failing, leaving.
#include "braid/comm/transport/progress_engine.h"

#include <algorithm>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/transport/message_collectives.h"

namespace braid::comm::transport {
namespace {

// A rank whose peers wait for another rank knows only that they do. The rank at fault is named within this time by one
// that waits for it.
constexpr double kIndirectSeconds = 2;
constexpr double kNapSeconds = 0.05;

}  // namespace

ProgressEngine::ProgressEngine(std::unique_ptr<Transport> transport, const RankOptions& options)
    : options_(options),
      transport_(std::move(transport)),
      table_(*transport_, options.rank, options.size, *options.failures, options.host_of_rank) {
  if (options.sums == ReductionOrder::Engine) own_sums_ = {.of_two = 0, .of_more = 0};
}

std::shared_ptr<CollectiveQueue> ProgressEngine::open(const std::shared_ptr<const Group>& group) {
  std::shared_ptr<CollectiveQueue> queue = transport_->collectives(group);
  if (!queue) queue = std::make_shared<MessageCollectives>(group, table_, own_sums_);
  std::vector<std::shared_ptr<CollectiveQueue>> unused;  // destroyed without the lock
  const std::scoped_lock hold(mutex_);
  std::erase_if(queues_, [&](auto& one) {
    const bool erased = one.use_count() == 1 && one->idle() && !one->needed_by_peers();
    if (erased) unused.push_back(std::move(one));
    return erased;
  });
  queues_.push_back(queue);
  return queue;
}

void ProgressEngine::wait(const Operation& operation, double issued_seconds) {
  double left = options_.deadline_seconds, turn = now_seconds();
  ReportedWait reported(options_.activity);
  for (;;) {
    const uint64_t seen = transport_->events();
    transport_->advance();
    if (options_.failures->failure()) {
      raise(operation.label(), now_seconds() - issued_seconds, operation.calls());
    }
    if (operation.done()) return;
    if (table_.any_left()) {
      if (const Stall stall = operation.stall(); stall.lost >= 0 && !operation.done()) {
        options_.failures->fail({stall.lost, options_.rank,
                                 cat("has ended without joining ", stall.label,
                                     last_call_text(stall.lost, operation.last_call_of(stall.lost)))});
        continue;
      }
    }
    if (left <= 0) {
      const Stall stall = operation.stall();
      if (stall.names_rank() || left <= -kIndirectSeconds) {
        report_late(operation, stall);
        continue;
      }
    }
    transport_->sleep(seen, reported.nap(std::max(left, kNapSeconds), [&] { return operation.label(); }));
    const double begin = std::exchange(turn, now_seconds());
    left -= std::min(turn - begin, 2 * transport_->longest_sleep());  // a longer turn was stopped, as were all ranks
  }
}

bool ProgressEngine::poll(const Operation& operation) {
  transport_->advance();
  return operation.done() || options_.failures->failure();
}

void ProgressEngine::raise(const std::string& op, double elapsed_seconds, std::vector<std::string> calls) {
  stop();
  std::optional<Failure> first;
  for (const double end = now_seconds() + options_.deadline_seconds; !(first = options_.failures->failure());) {
    check(now_seconds() < end, "a failure that was reported becomes known");
    transport_->sleep(transport_->events(), transport_->longest_sleep());
  }
  throw CommError({op, first->rank, elapsed_seconds, first->why, std::move(calls)});
}

void ProgressEngine::leave() {
  if (!options_.failures->failure()) {
    for (const auto& queue : queues()) queue->start_all();
    ReportedWait reported(options_.activity);
    const auto wait_until = [&](const auto& condition) {
      for (;;) {
        const uint64_t seen = transport_->events();
        transport_->advance();
        if (options_.failures->failure() || condition()) return;
        transport_->sleep(seen, reported.nap(transport_->longest_sleep(), [] { return "the end of all ranks"; }));
      }
    };
    table_.leave();
    wait_until([this] { return idle(); });
    transport_->end();
    wait_until([this] { return transport_->may_stop(); });
  }
  stop();
}

void ProgressEngine::stop() {
  std::call_once(stopped_, [this] {
    table_.stop();
    for (const auto& queue : queues()) queue->stop();
  });
}

bool ProgressEngine::idle() const {
  return table_.idle() && std::ranges::all_of(queues(), [](const auto& queue) { return queue->idle(); });
}

std::vector<std::shared_ptr<CollectiveQueue>> ProgressEngine::queues() const {
  const std::scoped_lock hold(mutex_);
  return queues_;
}

void ProgressEngine::report_late(const Operation& operation, const Stall& stall) {
  const std::string limit = cat(exact(options_.deadline_seconds), " s");
  if (stall.missing.empty() && stall.unfinished >= 0) {
    return options_.failures->fail(
        {stall.unfinished, options_.rank, cat("did not finish its part of ", stall.label, " within ", limit)});
  }
  if (stall.missing.empty()) return fail(cat("all arrived at ", stall.label, ", not done within ", limit));
  options_.failures->fail(
      {stall.missing[0], options_.rank,
       cat("did not arrive at ", stall.label, " within ", limit, " ", text_of_missing(stall.missing),
           last_call_text(stall.missing[0], operation.last_call_of(stall.missing[0])))});
}

std::string text_of_missing(const std::vector<int>& ranks) {
  std::vector<std::string> texts;
  for (const int rank : ranks) texts.push_back(cat(rank));
  return cat("(missing: rank ", joined(texts), ")");
}

WaitedWork::WaitedWork(std::shared_ptr<ProgressEngine> engine, Parts parts)
    : engine_(std::move(engine)), parts_(std::move(parts)), issued_seconds_(now_seconds()) {}

void WaitedWork::order_before(Queue& queue) {
  if (dynamic_cast<HostQueue*>(&queue)) return wait_host();
  // If the wait fails, the failure has poisoned the world, and the rank gets it at its next wait_host().
  queue.enqueue([self = shared_from_this()] {
    try {
      self->wait_host();
    } catch (const CommError&) {
    }
  });
}

void WaitedWork::wait_host() {
  for (const auto& part : parts_) engine_->wait(*part, issued_seconds_);
}

bool WaitedWork::done() const {
  return std::ranges::all_of(parts_, [this](const auto& part) { return engine_->poll(*part); });
}

}  // namespace braid::comm::transport
