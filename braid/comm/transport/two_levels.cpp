// Makes the exchanges inside nodes and across them.
#include "braid/comm/transport/two_levels.h"

#include <algorithm>
#include <bit>
#include <map>

namespace braid::comm::transport {
namespace {

using Bytes = Collective::Bytes;
using local::Combine;

constexpr int64_t kLine = Collective::kCacheLine;

int64_t whole_lines(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Inputs of one combination: equal places in memory, one after another.
struct Inputs {
  std::byte* begin;
  int64_t stride;  // bytes
  std::byte* at(int64_t index) const { return begin + index * stride; }
};

// Returns a function that combines `inputs` in their order into `output`.
std::function<void()> combination(Combine function, std::vector<const void*> inputs, void* output, int64_t count) {
  return [function, inputs = std::move(inputs), output, count] {
    if (count > 0) function({inputs, 0, {&output, 1}, 0, count});
  };
}

class TwoLevelRound {
 public:
  TwoLevelRound(const Collective& collective, const NodeMembers& members, int64_t number, std::byte* scratch)
      : collective_(collective),
        call_(collective.call()),
        members_(members),
        stretch_(collective.stretch(number)),
        scratch_(scratch),
        nodes_(members.num_nodes()),
        places_(members.num_places()),
        node_(members.node),
        place_(members.place),
        bytes_(static_cast<int64_t>(c10::elementSize(call_.type))),
        partial_bytes_(static_cast<int64_t>(c10::elementSize(local::partial_type(call_.type, call_.op)))) {}

  std::vector<Exchange> all_reduce() const;
  std::vector<Exchange> reduce_scatter() const;
  std::vector<Exchange> all_gather() const;

  int64_t all_reduce_scratch() const { return places_ * part_stride() + sums_stride() + nodes_ * share_stride(); }
  int64_t reduce_scatter_scratch() const {
    return whole_lines(collective_.stretch_bytes()) * places_ * nodes_ + 2 * nodes_ * chunk_stride();
  }

 private:
  int member(int node, int place) const { return members_.at[node][place]; }
  bool sums_as_they_are() const { return partial_bytes_ == bytes_; }

  // The strides are those of full rounds, whole cache lines each.
  int64_t part_stride() const { return whole_lines(collective_.stretch_bytes() / places_ + 2 * kLine); }
  int64_t sums_stride() const { return sums_as_they_are() ? 0 : part_stride() / bytes_ * partial_bytes_; }
  int64_t share_stride() const {
    return whole_lines(collective_.stretch_bytes() / (places_ * nodes_) + 2 * kLine) / bytes_ * partial_bytes_;
  }
  int64_t chunk_stride() const { return whole_lines(collective_.stretch_bytes()) / bytes_ * partial_bytes_; }

  // Share `node` of part `place` of the stretch.
  Bytes share(int place, int node) const { return collective_.result(stretch_, place * nodes_ + node); }
  Bytes part(int place) const {
    const Bytes first = share(place, 0), last = share(place, nodes_ - 1);
    return {first.data, last.data + last.count - first.data};
  }
  // Returns where the partial sum of `bytes`, which lie in this rank's part, is in `sums`.
  Bytes partial(Bytes bytes, std::byte* sums) const {
    return {sums + (bytes.data - part(place_).data) / bytes_ * partial_bytes_, bytes.count / bytes_ * partial_bytes_};
  }
  Bytes chunk(int node, int place) const { return collective_.received_first(stretch_, member(node, place)); }

  template <class Function>
  void for_other_places(const Function& function) const {
    for (int step = 1; step < places_; ++step) function((place_ + step) % places_);
  }
  template <class Function>
  void for_other_nodes(const Function& function) const {
    for (int step = 1; step < nodes_; ++step) function((node_ + step) % nodes_);
  }

  const Collective& collective_;
  const Call call_;
  const NodeMembers& members_;
  const Collective::Stretch stretch_;
  std::byte* const scratch_;
  const int nodes_, places_, node_, place_;
  const int64_t bytes_, partial_bytes_;  // of an element
};

// The sum of the node's members is formed in place, unless its elements are longer.
std::vector<Exchange> TwoLevelRound::all_reduce() const {
  const Bytes own = part(place_), own_share = share(place_, node_);
  const Inputs of_places{scratch_, part_stride()};
  std::byte* const after = of_places.at(places_);
  std::byte* const sums = sums_as_they_are() ? own.data : after;
  const Inputs of_nodes{after + sums_stride(), share_stride()};

  Exchange inside, across, back, out;
  std::vector<const void*> inputs, sums_of_nodes;
  for (int place = 0; place < places_; ++place) inputs.push_back(place == place_ ? own.data : of_places.at(place));
  for (int node = 0; node < nodes_; ++node) {
    sums_of_nodes.push_back(node == node_ ? partial(own_share, sums).data : of_nodes.at(node));
  }
  for_other_places([&](int place) {
    const int peer = member(node_, place);
    inside.receives.push_back({peer, {of_places.at(place), own.count}});
    inside.sends.push_back({peer, part(place)});
    out.receives.push_back({peer, part(place)});
    out.sends.push_back({peer, own});
  });
  for_other_nodes([&](int node) {
    const int peer = member(node, place_);
    across.receives.push_back({peer, {of_nodes.at(node), partial(own_share, sums).count}});
    across.sends.push_back({peer, partial(share(place_, node), sums)});
    back.receives.push_back({peer, share(place_, node)});
    back.sends.push_back({peer, own_share});
  });
  inside.then =
      combination(local::combine_to_partial(call_.type, call_.op), std::move(inputs), sums, own.count / bytes_);
  across.then = combination(local::combine_partials(call_.type, call_.op), std::move(sums_of_nodes), own_share.data,
                            own_share.count / bytes_);
  return {inside, across, back, out};
}

std::vector<Exchange> TwoLevelRound::reduce_scatter() const {
  const Bytes output = collective_.output(stretch_);
  const int64_t count = output.count / bytes_, partial = count * partial_bytes_;
  const Inputs of_members{scratch_, whole_lines(collective_.stretch_bytes())};
  const Inputs sums{of_members.at(places_ * nodes_), chunk_stride()};
  const Inputs of_nodes{sums.at(nodes_), chunk_stride()};

  Exchange inside, across;
  std::vector<std::function<void()>> combinations;
  std::vector<const void*> sums_of_nodes;
  for (int node = 0; node < nodes_; ++node) {
    std::vector<const void*> inputs;
    for (int place = 0; place < places_; ++place) {
      inputs.push_back(place == place_ ? collective_.sent_first(stretch_, member(node, place)).data
                                       : of_members.at(place * nodes_ + node));
    }
    combinations.push_back(combination(local::combine_to_partial(call_.type, call_.op), inputs, sums.at(node), count));
    sums_of_nodes.push_back(node == node_ ? sums.at(node) : of_nodes.at(node));
  }
  for_other_places([&](int place) {
    const int peer = member(node_, place);
    for (int node = 0; node < nodes_; ++node) {
      inside.receives.push_back({peer, {of_members.at(place * nodes_ + node), output.count}});
      inside.sends.push_back({peer, collective_.sent_first(stretch_, member(node, place))});
    }
  });
  for_other_nodes([&](int node) {
    const int peer = member(node, place_);
    across.receives.push_back({peer, {of_nodes.at(node), partial}});
    across.sends.push_back({peer, {sums.at(node), partial}});
  });
  inside.then = [combinations] {
    for (const auto& combine : combinations) combine();
  };
  across.then =
      combination(local::combine_partials(call_.type, call_.op), std::move(sums_of_nodes), output.data, count);
  return {inside, across};
}

std::vector<Exchange> TwoLevelRound::all_gather() const {
  Exchange first, second;
  const Bytes own = collective_.sent_first(stretch_, member(node_, place_));
  for_other_nodes([&](int node) {
    first.receives.push_back({member(node, place_), chunk(node, place_)});
    first.sends.push_back({member(node, place_), own});
  });
  for_other_places([&](int place) {
    const int peer = member(node_, place);
    first.receives.push_back({peer, chunk(node_, place)});
    first.sends.push_back({peer, own});
    for_other_nodes([&](int node) {
      second.receives.push_back({peer, chunk(node, place)});
      second.sends.push_back({peer, chunk(node, place_)});
    });
  });
  first.then = [&collective = collective_, stretch = stretch_] { collective.copy_own(stretch); };
  return {first, second};
}

// Adds an empty message to each member that the exchange leaves out.
void announce(Exchange& exchange, const Group& group) {
  std::vector<bool> is_sent(static_cast<size_t>(group.size()));
  for (const Transfer& sent : exchange.sends) is_sent[static_cast<size_t>(sent.member)] = true;
  for (int step = 1; step < group.size(); ++step) {
    const int member = (group.rank + step) % group.size();
    if (is_sent[static_cast<size_t>(member)]) continue;
    exchange.receives.push_back({member, {nullptr, 0}});
    exchange.sends.push_back({member, {nullptr, 0}});
  }
}

}  // namespace

std::optional<NodeMembers> node_members(const Group& group) {
  std::map<int, std::vector<int>> by_node;  // in order of the nodes' first members below
  for (int member = 0; member < static_cast<int>(group.nodes.size()); ++member) {
    by_node[group.nodes[member]].push_back(member);
  }
  if (by_node.size() < 2) return std::nullopt;
  NodeMembers members;
  for (const auto& [node, at] : by_node) members.at.push_back(at);
  std::ranges::sort(members.at);
  const size_t size = members.at.front().size();
  if (size < 2 || std::ranges::any_of(members.at, [&](const auto& at) { return at.size() != size; })) return {};
  members.keep_tree = std::has_single_bit(size);
  int next = 0;
  for (int node = 0; node < members.num_nodes(); ++node) {
    for (int place = 0; place < members.num_places(); ++place) {
      const int member = members.at[node][place];
      members.keep_tree = members.keep_tree && member == next++;
      if (member == group.rank) members.node = node, members.place = place;
    }
  }
  return members;
}

bool has_two_levels(const Call& call, const NodeMembers& members) {
  const auto bytes = [](at::ScalarType type) { return static_cast<int>(c10::elementSize(type)); };
  switch (call.kind) {
    case CallKind::AllGather:
      return true;
    case CallKind::AllReduce:
      return members.keep_tree;
    case CallKind::ReduceScatter:
      return members.keep_tree &&
             bytes(local::partial_type(call.type, call.op)) < members.num_places() * bytes(call.type);
    default:
      return false;
  }
}

int64_t two_level_scratch_bytes(const Collective& collective, const NodeMembers& members) {
  const TwoLevelRound round(collective, members, 0, nullptr);
  switch (collective.call().kind) {
    case CallKind::AllReduce:
      return round.all_reduce_scratch();
    case CallKind::ReduceScatter:
      return round.reduce_scatter_scratch();
    default:
      return 0;
  }
}

std::vector<Exchange> two_level_exchanges(const Collective& collective, const NodeMembers& members, int64_t number,
                                          std::byte* scratch) {
  const TwoLevelRound round(collective, members, number, scratch);
  auto exchanges = collective.call().kind == CallKind::AllReduce       ? round.all_reduce()
                   : collective.call().kind == CallKind::ReduceScatter ? round.reduce_scatter()
                                                                       : round.all_gather();
  if (number == 0) announce(exchanges[0], collective.group());
  return exchanges;
}

}  // namespace braid::comm::transport
