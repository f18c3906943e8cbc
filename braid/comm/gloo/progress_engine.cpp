// Coming together, waiting, leaving.
#include "braid/comm/gloo/progress_engine.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::comm::gloo {
namespace {

constexpr double kNamedByLaneSeconds = 2 * MatchTable::kNamedSeconds;  // a lane names a peer first
constexpr double kConnectSeconds = 10;                                 // at most, once all ranks are there

std::string listed(const std::vector<int>& ranks) {
  std::vector<std::string> texts;
  for (const int rank : ranks) texts.push_back(cat(rank));
  return joined(texts);
}

std::string text_of(const std::vector<int>& missing) { return cat("(missing: rank ", listed(missing), ")"); }

std::shared_ptr<const Group> world_group(const GlooOptions& options) {
  Group world{.id = 0, .name = "world", .world_ranks = std::vector<int>(options.size), .rank = options.rank};
  std::iota(world.world_ranks.begin(), world.world_ranks.end(), 0);
  return std::make_shared<const Group>(std::move(world));
}

}  // namespace

ProgressEngine::ProgressEngine(const GlooOptions& options) : options_(options), world_(world_group(options)) {
  check(options.store && options.failures, "a world over Gloo has a store and a failure state");
  check(options.rank >= 0 && options.rank < options.size, "a rank of a world over Gloo is one of its ranks");
  const double begin = now_seconds();
  try {
    if (options.size > 1) {
      listener_ = Listener::at(options.address);
      engine_ = connect_world();
    }
  } catch (const EngineError& error) {
    fail(error.what());
    raise("the start of Gloo", now_seconds() - begin);
  }
  post_ = std::make_unique<MatchTable>(engine_.get(), options.rank, options.size, *options.failures, news_);
}

// An activity of its own, at which the hang watch is patient: connecting has a deadline, and its error says more.
std::unique_ptr<Engine> ProgressEngine::connect_world() {
  int to = -1;
  const auto on_peer = [&](int rank) {
    if (std::exchange(to, rank) != rank && options_.activity)
      options_.activity->begin_storage(rank < 0 ? "testing its connections" : cat("connecting to rank ", rank));
  };
  if (options_.activity) options_.activity->begin_storage("connecting to all ranks");
  try {
    return connect(*world_, "world", on_peer);
  } catch (const EngineError& error) {
    const std::string whom = to < 0 ? "all ranks" : cat("rank ", to);
    options_.failures->fail(
        {-1, options_.rank, cat("rank ", options_.rank, " cannot connect to ", whom, ": ", error.what())});
    throw;
  }
}

// On the thread of the sums, while the rank's own computes or waits for them.
std::unique_ptr<Engine> ProgressEngine::connect_sums(const Group& group) const {
  BackgroundActivity connecting(options_.activity);
  const auto on_peer = [&](int rank) {
    connecting.begin(
        cat(rank < 0 ? "testing its connections" : cat("connecting to rank ", rank), " for sums on ", group.name));
  };
  return connect(group, cat("sums/", group.id), on_peer);
}

ProgressEngine::~ProgressEngine() { stop(); }

int64_t ProgressEngine::next_group_id() { return static_cast<int64_t>(options_.rank) << 32 | ++num_groups_; }

std::shared_ptr<CollectiveQueue> ProgressEngine::open(std::shared_ptr<const Group> group) {
  const auto connect_group = [this, group] { return connect_sums(*group); };
  const CollectiveQueue::Ways ways{*post_, news_, options_.sums, connect_group,
                                   [this, group](const std::string& why) { closed(*group, why); }};
  auto line = std::make_shared<CollectiveQueue>(std::move(group), ways);
  const std::scoped_lock hold(mutex_);
  std::erase_if(lines_, [](const auto& one) { return one.use_count() == 1 && !one->has_connections(); });
  lines_.push_back(line);
  return line;
}

void ProgressEngine::wait(const Operation& operation, double issued_seconds) {
  double left = options_.deadline_seconds, turn = now_seconds();
  ReportedWait told(options_.activity);
  for (;;) {
    const uint64_t seen = news_.look();
    if (options_.failures->failure()) raise(operation.label(), now_seconds() - issued_seconds);
    if (operation.done()) return;
    if (post_->any_left()) {
      if (const Stall stall = operation.stall(); stall.lost >= 0 && !operation.done()) {
        options_.failures->fail({stall.lost, options_.rank, cat("has ended without joining ", stall.label)});
        continue;
      }
    }
    if (left <= 0) report_late(operation.stall());
    news_.wait(seen, told.nap(std::max(left, 0.0), [&] { return operation.label(); }));
    const double begin = std::exchange(turn, now_seconds());
    left -= std::min(turn - begin, 2 * Notifier::kNapSeconds);  // a turn that takes longer was stopped
  }
}

bool ProgressEngine::poll(const Operation& operation) { return operation.done() || options_.failures->failure(); }

void ProgressEngine::fail(const std::string& why) { options_.failures->fail({options_.rank, options_.rank, why}); }

void ProgressEngine::raise(const std::string& op, double elapsed_seconds) {
  stop();
  std::optional<Failure> first;
  for (const double end = now_seconds() + options_.deadline_seconds; !(first = options_.failures->failure());) {
    check(now_seconds() < end, "a failure that is told to the world's failure state becomes known");
    news_.wait(news_.look(), Notifier::kNapSeconds);
  }
  throw CommError({op, first->rank, elapsed_seconds, first->why});
}

void ProgressEngine::leave() {
  if (!options_.failures->failure()) {
    for (const auto& line : lines()) line->start_all();
    ReportedWait told(options_.activity);
    const auto wait_until = [&](const auto& so) {
      for (uint64_t seen = news_.look(); !options_.failures->failure() && !so(); seen = news_.look()) {
        news_.wait(seen, told.nap(Notifier::kNapSeconds, [] { return "the end of all ranks"; }));
      }
    };
    post_->leave();
    wait_until([this] { return idle(); });
    post_->end();
    wait_until([this] { return post_->all_ended(); });
  }
  stop();
}

// So that whoever does not come is known by its rank, before Gloo looks for it.
void ProgressEngine::meet(const Group& group, const std::string& prefix) const {
  const auto key = [&](int rank) { return cat(prefix, "here/", rank); };
  const auto come = [&](int rank, double seconds) { return options_.store->get(key(rank), seconds).has_value(); };
  const auto given_up = [this] { return stopping_ || options_.failures->failure(); };
  Stall stall{.label = cat("the start of Gloo on ", group.name)};
  options_.store->set(key(options_.rank), "");
  const double end = now_seconds() + options_.deadline_seconds;
  ReportedWait told(options_.activity);
  const auto nap = [&] { return told.nap(Notifier::kNapSeconds, [&] { return stall.label; }); };
  for (const int rank : group.world_ranks) {
    while (!come(rank, nap()) && now_seconds() < end && !given_up()) continue;
  }
  if (given_up()) throw EngineError("given up");
  std::ranges::copy_if(group.world_ranks, std::back_inserter(stall.missing), [&](int rank) { return !come(rank, 0); });
  if (!stall.missing.empty()) {
    report_late(stall);
    throw EngineError("late");
  }
}

// Collective of the group. The engine keeps its options for life, and Gloo may ask for a peer's address late: `on_peer`
// is called during the start alone.
std::unique_ptr<Engine> ProgressEngine::connect(const Group& group, const std::string& name,
                                                const OnPeer& on_peer) const {
  const std::string prefix = cat(options_.prefix, name, "/");
  meet(group, prefix);
  const auto starting = std::make_shared<const OnPeer>(on_peer);
  const auto while_starting = [told = std::weak_ptr(starting), ranks = group.world_ranks](int peer) {
    if (const auto on = told.lock()) (*on)(peer < 0 ? peer : ranks.at(static_cast<size_t>(peer)));
  };
  return std::make_unique<Engine>(
      Engine::Options{.rank = group.rank,
                      .size = group.size(),
                      .listener = listener_,
                      .store = options_.store,
                      .prefix = prefix,
                      .connect_seconds = std::min(options_.deadline_seconds, kConnectSeconds),
                      .sum_seconds = options_.deadline_seconds,
                      .given_up = [this] { return stopping_ || options_.failures->failure().has_value(); },
                      .on_peer = while_starting});
}

// Which connection of the group it was is not known here: no rank is named alone.
void ProgressEngine::closed(const Group& group, const std::string& why) {
  const double end = now_seconds() + kNamedByLaneSeconds;
  const auto known = [this] { return stopping_ || options_.failures->failure() || post_->any_left(); };
  while (!known() && now_seconds() < end) news_.wait(news_.look(), Notifier::kNapSeconds);
  if (known()) return;
  options_.failures->fail({-1, options_.rank,
                           cat("rank ", options_.rank, " cannot sum on ", group.name, " with all of rank ",
                               listed(group.world_ranks), ": ", printable(why, 300))});
}

void ProgressEngine::stop() {
  std::call_once(stopped_, [this] {
    stopping_ = true;
    if (post_) post_->stop();
    for (const auto& line : lines()) line->stop();
  });
}

bool ProgressEngine::idle() const {
  return post_->idle() && std::ranges::all_of(lines(), [](const auto& line) { return line->idle(); });
}

std::vector<std::shared_ptr<CollectiveQueue>> ProgressEngine::lines() const {
  const std::scoped_lock hold(mutex_);
  return lines_;
}

void ProgressEngine::report_late(const Stall& stall) const {
  const std::string limit = cat(exact(options_.deadline_seconds), " s");
  if (stall.missing.empty()) {
    options_.failures->fail(
        {options_.rank, options_.rank, cat("all arrived at ", stall.label, ", not done within ", limit)});
    return;
  }
  options_.failures->fail({stall.missing[0], options_.rank,
                           cat("did not arrive at ", stall.label, " within ", limit, " ", text_of(stall.missing))});
}

}  // namespace braid::comm::gloo
