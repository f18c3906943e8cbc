// What is given, where it goes, what is combined.
#include "braid/comm/gloo/round.h"

#include <algorithm>
#include <cstring>

namespace braid::comm::gloo {
namespace {

constexpr int64_t kLineBytes = 64;  // shares begin at cache lines

int64_t whole_lines(int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

// What one member leaves in the scratch of another.
int64_t slot_bytes(const RoundTask& task) {
  const int64_t n = task.group->size(), stretch = task.capacity * task.element_bytes;
  const bool sums_here = task.call.kind == CallKind::AllReduce && task.sum != RoundTask::Sum::Engine;
  if (!sums_here && task.call.kind != CallKind::ReduceScatter) return 0;
  const bool shares = sums_here && task.sum == RoundTask::Sum::Shares;
  return whole_lines(shares ? (stretch + n - 1) / n + kLineBytes : stretch);
}

}  // namespace

int64_t RoundTask::scratch_bytes() const { return slot_bytes(*this) * group->size(); }

Round::Round(const RoundTask& task, int64_t number, at::Tensor scratch, Ways ways)
    : task_(task),
      first_(number * task.capacity),
      count_(std::clamp<int64_t>(task.call.chunk - first_, 0, task.capacity)),
      scratch_(std::move(scratch)),
      ways_(std::move(ways)) {
  make(Route::Line::First);
  if (task_.call.kind == CallKind::AllReduce && task_.sum == RoundTask::Sum::Shares) make(Route::Line::Second);
}

void Round::start() { post(lines_[0]); }

std::vector<int> Round::missing() const {
  std::vector<int> ranks;
  for (const Message& parcel : lines_[0]) {
    if (parcel.side == Message::Side::Receive && !parcel.met) ranks.push_back(parcel.route.peer);
  }
  return ranks;
}

int Round::lost() const {
  for (const auto& line : lines_) {
    for (const Message& parcel : line) {
      if (ways_.post.lost(parcel)) return parcel.route.peer;
    }
  }
  return -1;
}

// By elements of the stretch.
Round::Share Round::share(int member) const {
  const int64_t line = std::max<int64_t>(1, kLineBytes / task_.element_bytes), n = task_.group->size();
  const auto bound = [&](int64_t index) { return std::min(count_, (count_ * index / n + line - 1) / line * line); };
  return {bound(member), bound(member + 1)};
}

Round::Place Round::given(int member) const {
  const auto in_at = [this](int64_t element) {
    return const_cast<std::byte*>(task_.in) + element * task_.element_bytes;
  };
  switch (task_.call.kind) {
    case CallKind::AllReduce: {
      if (task_.sum == RoundTask::Sum::Engine) return {nullptr, 0};
      if (task_.sum == RoundTask::Sum::Whole) return {in_at(first_), count_};
      const auto [begin, end] = share(member);
      return {in_at(first_ + begin), end - begin};
    }
    case CallKind::ReduceScatter:
    case CallKind::AllToAll:
      return {in_at(member * task_.call.chunk + first_), count_};
    case CallKind::AllGather:
    case CallKind::Split:
      return {in_at(first_), count_};
    case CallKind::Broadcast:
      return {in_at(first_), task_.group->rank == task_.call.root ? count_ : 0};
    case CallKind::Barrier:
    case CallKind::Share:  // of threads alone
      break;
  }
  return {nullptr, 0};
}

Round::Place Round::place_of(int member) const {
  const auto out_at = [this](int64_t element) { return task_.out + element * task_.element_bytes; };
  switch (task_.call.kind) {
    case CallKind::AllReduce: {
      if (task_.sum == RoundTask::Sum::Engine) return {nullptr, 0};
      const auto [begin, end] = share(task_.group->rank);
      return {scratch_of(member), task_.sum == RoundTask::Sum::Whole ? count_ : end - begin};
    }
    case CallKind::ReduceScatter:
      return {scratch_of(member), count_};
    case CallKind::AllToAll:
    case CallKind::AllGather:
    case CallKind::Split:
      return {out_at(member * task_.call.chunk + first_), count_};
    case CallKind::Broadcast:
      return {out_at(first_), member == task_.call.root ? count_ : 0};
    case CallKind::Barrier:
    case CallKind::Share:
      break;
  }
  return {nullptr, 0};
}

// Receives come first, so that what is sent to this rank finds them.
void Round::make(Route::Line line) {
  using Side = Message::Side;
  const bool first = line == Route::Line::First;
  const auto place_in_out = [this](int member) -> Place {
    const auto [begin, end] = share(member);
    return {task_.out + (first_ + begin) * task_.element_bytes, end - begin};
  };
  const int n = task_.group->size(), rank = task_.group->rank;
  for (int step = 1; step < n; ++step) {
    const int member = (rank + step) % n;
    add_parcel(line, Side::Receive, member, first ? place_of(member) : place_in_out(member));
  }
  for (int step = 1; step < n; ++step) {
    const int member = (rank + step) % n;
    add_parcel(line, Side::Send, member, first ? given(member) : place_in_out(rank));
  }
}

void Round::add_parcel(Route::Line line, Message::Side side, int member, const Place& place) {
  const Route route{task_.group->id, task_.group->world_ranks[member], line, ways_.tag};
  lines_[line == Route::Line::First ? 0 : 1].emplace_back(
      side, route, task_.call, place.data, place.count * task_.element_bytes, static_cast<Message::Owner*>(this));
}

void Round::post(std::deque<Message>& parcels) {
  open_ += static_cast<int>(parcels.size());
  awaited_ = 1 + static_cast<int>(std::ranges::count_if(parcels, [this](const auto& one) { return awaits(one.side); }));
  const auto self = shared_from_this();
  for (Message& parcel : parcels) ways_.post.add(MessagePtr(self, &parcel));
  if (--awaited_ == 0) got_line();
}

void Round::parcel_done(const Message& parcel) {
  if (awaits(parcel.side) && --awaited_ == 0) got_line();
  leave_one();
}

// A sum in place overwrites what it has given.
bool Round::awaits(Message::Side side) const {
  const bool gives_all = task_.call.kind == CallKind::AllReduce && task_.sum == RoundTask::Sum::Whole;
  return side == Message::Side::Receive || gives_all;
}

void Round::got_line() {
  if (line_ == 0) return after_first();
  leave_one();
}

void Round::after_first() {
  const Call& call = task_.call;
  const int rank = task_.group->rank;
  std::byte* const own_out = task_.out ? task_.out + first_ * task_.element_bytes : nullptr;
  if (call.kind == CallKind::AllReduce && task_.sum == RoundTask::Sum::Engine) {
    return ways_.engine_sum(task_.tensors[1], [self = shared_from_this()] { self->leave_one(); });
  }
  if (call.kind == CallKind::AllReduce && task_.sum == RoundTask::Sum::Shares) {
    const auto [begin, end] = share(rank);
    combine(begin, end, own_out + begin * task_.element_bytes);
    line_ = 1;
    return post(lines_[1]);
  }
  if (call.kind == CallKind::AllReduce || call.kind == CallKind::ReduceScatter) {
    combine(0, count_, own_out);
  } else if (call.kind == CallKind::AllToAll || call.kind == CallKind::AllGather || call.kind == CallKind::Split) {
    const Place from = given(rank), to = place_of(rank);
    if (from.count > 0 && from.data != to.data) std::memcpy(to.data, from.data, from.count * task_.element_bytes);
  }
  leave_one();
}

// Elements [begin, end) of the stretch.
void Round::combine(int64_t begin, int64_t end, std::byte* out) {
  if (begin == end) return;
  const int n = task_.group->size(), rank = task_.group->rank;
  std::vector<const void*> inputs;
  for (int member = 0; member < n; ++member) inputs.push_back(scratch_of(member));
  const int64_t chunk = task_.call.kind == CallKind::ReduceScatter ? rank * task_.call.chunk : 0;
  inputs[rank] = task_.in + (chunk + first_ + begin) * task_.element_bytes;
  void* const output = out;
  task_.combine({inputs, 0, {&output, 1}, 0, end - begin});
}

void Round::leave_one() {
  if (--open_ == 0) ways_.done();
}

std::byte* Round::scratch_of(int member) const {
  return static_cast<std::byte*>(scratch_.mutable_data_ptr()) + member * slot_bytes(task_);
}

}  // namespace braid::comm::gloo
