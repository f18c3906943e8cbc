// The client sends most requests to all servers at once and reads answers in order of arrival. It also reads
// acknowledgements of pushes meanwhile.
#include "braid/sync/server/server_client.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

#include "braid/base/errors.h"
#include "braid/sync/server/whole_state.h"

namespace braid {
namespace {

constexpr std::chrono::milliseconds kPause{1};

// Returns a copy of elements `range` of a contiguous tensor along its first dimension.
at::Tensor copied(const at::Tensor& from, const sync::server::KeyRange& range) {
  auto sizes = from.sizes().vec();
  sizes[0] = range.size();
  at::Tensor copy = at::empty(sizes, from.scalar_type());
  if (copy.numel() == 0) return copy;
  const size_t row_bytes = copy.nbytes() / static_cast<size_t>(range.size());
  const auto* first =
      static_cast<const std::byte*>(from.const_data_ptr()) + static_cast<size_t>(range.begin) * row_bytes;
  std::memcpy(copy.mutable_data_ptr(), first, copy.nbytes());
  return copy;
}

// Returns the rows of `rows` in `range`, numbered from the beginning of `range`.
TableRows rows_within(const TableRows& rows, const sync::server::KeyRange& range) {
  if (!rows.index.defined()) return {};
  const int64_t* all = rows.index.const_data_ptr<int64_t>();
  const int64_t* end = all + rows.index.numel();
  const int64_t first = std::lower_bound(all, end, range.begin) - all;
  const int64_t count = std::lower_bound(all, end, range.end) - all - first;
  if (count == 0) return {};
  TableRows part{at::empty({count}, at::kLong), {}};
  int64_t* index = part.index.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) index[i] = all[first + i] - range.begin;
  if (rows.values.defined()) part.values = copied(rows.values, {first, first + count});
  return part;
}

// Sessions of a worker that joins again must increase.
int64_t session_of_now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

}  // namespace

ServerClient::ServerClient(const KeyShares& shares, const optim::ElementRule& rule, const ClientOptions& options,
                           Channel& channel)
    : shares_(shares),
      rule_(rule),
      options_(options),
      channel_(channel),
      num_servers_(shares.elements.num_servers()),
      session_(session_of_now()),
      version_(static_cast<size_t>(num_servers_)),
      slowest_(static_cast<size_t>(num_servers_)),
      unacked_(static_cast<size_t>(num_servers_)) {
  check(options.push_every > 0 && options.pull_every > 0, "intervals are of one step or more");
  for (const TableShape& table : shares.whole.tables) row_sums_.emplace_back(shares.whole.type, table.width);
  report_.server_bytes.resize(static_cast<size_t>(num_servers_));
  join();
}

// Servers may be at different clocks. The worker starts at the latest of them.
void ServerClient::join() {
  ask("join", to_all(sync::server::RequestKind::Join, 0), sync::server::AnswerKind::Joined,
      [this](int, const sync::server::Envelope& fields, const ChannelMessage&) {
        clock_ = std::max(clock_, fields.number);
        return true;
      });
  ask("start", to_all(sync::server::RequestKind::Start, clock_), sync::server::AnswerKind::Started,
      [](int, const sync::server::Envelope&, const ChannelMessage&) { return true; });
}

bool ServerClient::due() const {
  if (!has_pulled_ || steps_since_pull_ >= options_.pull_every) return true;
  if (options_.consistency == Consistency::Asp) return false;
  const int64_t staleness = options_.consistency == Consistency::Ssp ? options_.staleness : 0;
  return *std::min_element(slowest_.begin(), slowest_.end()) < clock_ - staleness;
}

ServerClient::Requests ServerClient::pull_requests(const KeyedTensors& wanted, bool dense) const {
  Requests requests(static_cast<size_t>(num_servers_));
  for (int server = 0; server < num_servers_; ++server) {
    const KeyedTensors part = part_of({}, wanted.rows, server);
    const bool any = std::any_of(part.rows.begin(), part.rows.end(), [](const auto& r) { return r.index.defined(); });
    if (!dense && !any) continue;
    ChannelMessage message = sync::server::message_of(
        {static_cast<int64_t>(sync::server::RequestKind::Pull), session_, next_request_, clock_, dense ? 1 : 0});
    pack(part, RowContent::IndexOnly, message);
    requests[static_cast<size_t>(server)] = std::move(message);
  }
  return requests;
}

bool ServerClient::pull(KeyedTensors& wanted, Freshness freshness) {
  check(wanted.rows.size() == shares_.whole.tables.size(), "rows of each table, or none of it");
  const bool dense = freshness == Freshness::Newest || due();
  for (size_t t = 0; t < wanted.rows.size(); ++t) {
    TableRows& rows = wanted.rows[t];
    if (rows.index.defined()) {
      rows.values = at::empty({rows.index.numel(), shares_.whole.tables[t].width}, shares_.whole.type);
    }
  }
  ask("pull", pull_requests(wanted, dense), sync::server::AnswerKind::Pulled,
      [&](int server, const sync::server::Envelope& fields, const ChannelMessage& message) {
        if (fields.number != next_request_ || !read_pulled(server, message, wanted)) return false;
        if (dense) {
          version_[static_cast<size_t>(server)] = fields.a;
          slowest_[static_cast<size_t>(server)] = fields.b;
        }
        return true;
      });
  ++next_request_;
  ++report_.num_pulls;
  has_pulled_ = true;
  steps_since_pull_ = dense ? 1 : steps_since_pull_ + 1;
  return dense;
}

bool ServerClient::read_pulled(int server, const ChannelMessage& message, KeyedTensors& into) const {
  const auto read =
      unpacked(message, sync::server::Envelope::kNumFields, RowContent::IndexAndValues, shares_.part(server));
  if (!read) return false;
  if (read->dense.defined() && read->dense.numel() > 0 && into.dense.defined()) {
    check(into.dense.numel() == shares_.whole.num_elements && into.dense.scalar_type() == shares_.whole.type,
          "a copy of all parameters");
    auto* to = static_cast<std::byte*>(into.dense.mutable_data_ptr());
    const auto begin = static_cast<size_t>(shares_.elements.of(server).begin) * into.dense.element_size();
    std::memcpy(to + begin, read->dense.const_data_ptr(), read->dense.nbytes());
  }
  for (size_t t = 0; t < read->rows.size(); ++t) {
    const at::Tensor& values = read->rows[t].values;
    if (!values.defined()) continue;
    const int64_t* all = into.rows[t].index.const_data_ptr<int64_t>();
    const int64_t begin = shares_.rows[t].of(server).begin;
    const int64_t first = std::lower_bound(all, all + into.rows[t].index.numel(), begin) - all;
    const at::Tensor part = into.rows[t].values.narrow(0, first, read->rows[t].index.numel());
    if (values.nbytes() > 0) std::memcpy(part.mutable_data_ptr(), values.const_data_ptr(), values.nbytes());
  }
  return true;
}

// Returns the part that goes to one server.
KeyedTensors ServerClient::part_of(const at::Tensor& dense, const std::vector<TableRows>& rows, int server) const {
  KeyedTensors part;
  if (dense.defined()) part.dense = copied(dense, shares_.elements.of(server));
  for (size_t t = 0; t < rows.size(); ++t) part.rows.push_back(rows_within(rows[t], shares_.rows[t].of(server)));
  return part;
}

void ServerClient::accumulate(const KeyedTensors& gradient) {
  for (size_t t = 0; t < gradient.rows.size(); ++t) row_sums_[t].add(gradient.rows[t].index, gradient.rows[t].values);
  if (options_.push_every == 1 || !gradient.dense.defined()) return;
  if (!accumulated_.defined()) {
    accumulated_ = at::empty({shares_.whole.num_elements}, shares_.whole.type);
    std::memset(accumulated_.mutable_data_ptr(), 0, accumulated_.nbytes());
  }
  with_value_of(shares_.whole.type, [&](auto zero) {
    using T = decltype(zero);
    T* sum = accumulated_.mutable_data_ptr<T>();
    const T* more = gradient.dense.const_data_ptr<T>();
    for (int64_t i = 0; i < accumulated_.numel(); ++i) sum[i] += more[i];
  });
}

void ServerClient::push(const KeyedTensors& gradient, double lr) {
  check(gradient.rows.size() == shares_.whole.tables.size(), "rows of each table, or none of it");
  const bool has_dense = gradient.dense.defined();
  check(has_dense == (shares_.whole.num_elements > 0), "gradients of the flat parameters where there are any");
  check(!has_dense || (gradient.dense.numel() == shares_.whole.num_elements &&
                       gradient.dense.scalar_type() == shares_.whole.type && gradient.dense.is_contiguous()),
        "gradients of all parameters");
  accumulate(gradient);
  lr_ = lr;
  if (++steps_since_push_ == options_.push_every) send_push(accumulated_.defined() ? accumulated_ : gradient.dense);
}

void ServerClient::push_rest() {
  if (steps_since_push_ > 0) send_push(accumulated_);
}

void ServerClient::send_push(const at::Tensor& dense) {
  std::vector<TableRows> rows;
  for (sync::server::RowSum& sum : row_sums_) rows.push_back(sum.take());
  for (int server = 0; server < num_servers_; ++server) {
    ChannelMessage message =
        sync::server::message_of({static_cast<int64_t>(sync::server::RequestKind::Push), session_, clock_,
                                  version_[static_cast<size_t>(server)], sync::server::bits_of(lr_)});
    pack(part_of(dense, rows, server), RowContent::IndexAndValues, message);
    if (options_.retry_seconds > 0) unacked_[static_cast<size_t>(server)].emplace(clock_, message);
    if (send(server, std::move(message)) == Delivery::PeerClosed) server_closed("push", server);
  }
  drop_rest();
  ++clock_;
  ++report_.num_pushes;
}

void ServerClient::drop_rest() {
  for (sync::server::RowSum& sum : row_sums_) sum.take();
  if (accumulated_.defined()) std::memset(accumulated_.mutable_data_ptr(), 0, accumulated_.nbytes());
  steps_since_push_ = 0;
}

sync::server::ShardState ServerClient::fetch() {
  sync::server::ShardState state = sync::server::zero_state(shares_.whole, rule_);
  fetch(state);
  return state;
}

// One server after another, so that the answer of one server only is in memory.
void ServerClient::fetch(sync::server::ShardState& into) {
  check(sync::server::fits(into, shares_.whole, rule_), "a state of the same shape and rule");
  into.num_steps = std::numeric_limits<int64_t>::max();
  for (int server = 0; server < num_servers_; ++server) {
    ask("fetch", to_one(server, sync::server::RequestKind::Fetch), sync::server::AnswerKind::Fetched,
        [&](int, const sync::server::Envelope& fields, const ChannelMessage& message) {
          auto part = sync::server::unpacked_state(message, shares_.part(server), rule_);
          if (fields.number != next_request_ || !part) return false;
          part->num_steps = fields.a;
          sync::server::add_part(shares_, server, *part, into);
          return true;
        });
    ++next_request_;
  }
}

// One server after another, as above.
void ServerClient::store(const sync::server::ShardState& state) {
  check(sync::server::fits(state, shares_.whole, rule_), "a state of the same shape and rule");
  for (int server = 0; server < num_servers_; ++server) {
    Requests request = to_one(server, sync::server::RequestKind::Store);
    ChannelMessage& message = *request[static_cast<size_t>(server)];
    message.header[3] = state.num_steps;
    sync::server::pack(sync::server::part_of_state(shares_, rule_, state, server), message);
    ask("store", std::move(request), sync::server::AnswerKind::Stored,
        [this](int, const sync::server::Envelope& fields, const ChannelMessage&) {
          return fields.number == next_request_;
        });
    ++next_request_;
  }
  has_pulled_ = false;
}

// A server learns of a loss when no message waits for it. All workers ask at the same time, so each pauses between its
// requests.
int64_t ServerClient::pushes_of_lost(int worker) {
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (int server = 0; server < num_servers_; ++server) {
    for (bool asked = false, ended = false; !ended; ++next_request_, asked = true) {
      if (asked) std::this_thread::sleep_for(kPause);
      Requests request = to_one(server, sync::server::RequestKind::Clock);
      request[static_cast<size_t>(server)]->header[3] = worker;
      ask("clock", std::move(request), sync::server::AnswerKind::Clock,
          [&](int, const sync::server::Envelope& fields, const ChannelMessage&) {
            if (fields.number != next_request_) return false;
            ended = fields.b != 0;
            if (ended) fewest = std::min(fewest, fields.a);
            return true;
          });
    }
  }
  return fewest;
}

ServerClient::Requests ServerClient::to_all(sync::server::RequestKind kind, int64_t number) const {
  return Requests(static_cast<size_t>(num_servers_),
                  sync::server::message_of({static_cast<int64_t>(kind), session_, number, 0, 0}));
}

ServerClient::Requests ServerClient::to_one(int server, sync::server::RequestKind kind) const {
  Requests requests(static_cast<size_t>(num_servers_));
  requests[static_cast<size_t>(server)] =
      sync::server::message_of({static_cast<int64_t>(kind), session_, next_request_, 0, 0});
  return requests;
}

}  // namespace braid
