// Starting and running the thread.
#include "braid/sync/server/server_thread.h"

#include <pthread.h>

#include <algorithm>

#include "braid/base/started_thread.h"
#include "braid/base/text.h"
#include "braid/param/memory_account.h"

namespace braid::sync::server {

ServerThread::ServerThread(const Part& part, std::unique_ptr<Channel> channel, std::function<void()> failed)
    : shard_(part.shape, part.rule, part.not_decayed),
      channel_(std::move(channel)),
      logic_(part.options, shard_, *channel_),
      failed_(std::move(failed)),
      rank_(param::accounted_rank()) {
  if (part.initial.defined()) shard_.set_elements(part.initial);
  thread_ = started_thread<std::jthread>("a parameter server", [this] { run(); });
}

const ServerReport& ServerThread::finish() {
  if (thread_.joinable()) thread_.join();
  return logic_.report();
}

void ServerThread::run() {
  pthread_setname_np(pthread_self(), cat("server ", endpoint()).c_str());
  if (rank_) param::account_memory_to(*rank_);
  const param::MemoryScope scope(param::MemoryCategory::Servers);
  try {
    logic_.serve();
  } catch (...) {
    failed_();
    channel_->close();
  }
}

std::vector<KeyRange> ranges_within(const std::vector<KeyRange>& ranges, const KeyRange& of) {
  std::vector<KeyRange> part;
  for (const KeyRange& range : ranges) {
    const int64_t begin = std::max(range.begin, of.begin), end = std::min(range.end, of.end);
    if (begin < end) part.push_back({begin - of.begin, end - of.begin});
  }
  return part;
}

}  // namespace braid::sync::server
