// Reads a cluster file table by table, and converts units as values are read.
#include "braid/plan/cluster_file.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "braid/base/checked_file.h"
#include "braid/base/text.h"
#include "braid/plan/cluster.h"
#include "braid/plan/table_reader.h"
#include "braid/spec/fields.h"

namespace braid::plan {
namespace {

constexpr size_t kMostKinds = 1000;  // keeps the sum of nodes, at most kMostCounted for each kind, within an int

// Returns the type nearest to a name. Names such as "bf16", which other libraries use, are understood.
std::string nearest_type(const std::string& name) {
  for (const auto& [short_name, type] : {std::pair{"bf16", DType::BFloat16},
                                         {"fp16", DType::Float16},
                                         {"half", DType::Float16},
                                         {"fp32", DType::Float32},
                                         {"fp64", DType::Float64}}) {
    if (name == short_name) return std::string(word(type));
  }
  const auto names = braid::words(DType());
  return nearest(name, {names.begin(), names.end()});
}

std::string types_text() {
  std::vector<std::string> quoted;
  for (const auto name : braid::words(DType())) quoted.push_back(spec::toml_text(std::string(name)));
  return joined(quoted);
}

class Reading {
 public:
  Reading(const spec::TomlTable& root, const std::string& origin, std::vector<Problem>& problems)
      : root_(root, "", origin, problems), origin_(origin), problems_(problems) {}

  Cluster cluster() {
    root_.read("name", cluster_.name);
    root_.read("nodes", nodes_, TableSource::Optional);
    read_rates();
    read_devices();
    read_link("node", "link_gbps", most_per_node() > 1 ? "devices on a node" : nullptr, cluster_.node);
    read_link("network", "gbps", several_nodes() ? "nodes" : nullptr, cluster_.network);
    read_all_reduces();
    read_host();
    read_disk();
    read_failures();
    root_.refuse_unknown_keys();
    return std::move(cluster_);
  }

 private:
  TableReader reader(const spec::TomlTable& table, const std::string& path) {
    return {table, path, origin_, problems_};
  }

  int most_per_node() const {
    int most = 0;
    for (const DeviceGroup& group : cluster_.devices) most = std::max(most, group.per_node);
    return most;
  }

  // Returns true if the cluster has several nodes. Two kinds mean several, even if their numbers of nodes are
  // unreadable.
  bool several_nodes() const { return cluster_.devices.size() > 1 || cluster_.num_nodes() > 1; }

  void read_rates() {
    std::string from(word(cluster_.rates));
    root_.read("rates", from);
    const auto known = value_of<RatesFrom>(from);
    if (!known) root_.refuse("rates", "must be \"data-sheet\" or \"measured\"");
    cluster_.rates = known.value_or(cluster_.rates);
  }

  void read_devices() {
    const spec::TomlList* list = root_.list("devices", TableSource::Needed);
    if (!list) return;
    if (list->empty() || list->size() > kMostKinds) {
      return root_.refuse("devices", cat("must hold 1 to ", kMostKinds, " kinds of devices"));
    }
    for (size_t number = 0; number < list->size(); ++number) {
      const auto* table = (*list)[number].as<spec::TomlTable>();
      if (!table) return root_.refuse("devices", "must be tables, written [[devices]]");
      cluster_.devices.push_back(device(*table, cat("devices[", number, "]"), list->size() == 1));
    }
    if (std::ranges::any_of(cluster_.devices, [](const DeviceGroup& group) { return group.nodes == 0; })) return;
    if (const int64_t devices = cluster_.num_devices(); devices > kMostDevices) {
      problems_.push_back({"devices", cat(devices), cat("must be at most ", kMostDevices, " in all"), "", origin_});
    }
    const int all = cluster_.num_nodes();
    if (nodes_ > 0 && nodes_ != all) {
      root_.refuse("nodes", cat("must be the ", counted(all, "node"), " of all devices"), cat(all));
    }
  }

  DeviceGroup device(const spec::TomlTable& table, const std::string& path, bool alone) {
    TableReader keys = reader(table, path);
    DeviceGroup group;
    keys.read("name", group.name);
    keys.read("per_node", group.per_node);
    group.nodes = alone ? std::max(nodes_, 1) : 0;
    keys.read("nodes", group.nodes, alone ? TableSource::Optional : TableSource::Needed);
    keys.read("memory_gib", {}, kGib, group.memory_bytes);
    keys.read("memory_gbps", {}, kGiga, group.memory_bytes_per_second);
    read_reserve(keys, group);
    keys.read("shared_cores", group.shared_cores);
    keys.read("bfloat16_products", group.bfloat16_products);
    keys.read("skew", {.lower = NumberRule::End::Closed, .given = TableSource::Optional}, 1, group.skew);
    if (const spec::TomlTable* peaks = keys.table("peak_tflops", TableSource::Needed)) {
      read_peaks(reader(*peaks, keys.path_of("peak_tflops")), *peaks, group);
    }
    read_shares(keys, group);
    read_attention(keys, group);
    read_streams(keys, group);
    keys.refuse_unknown_keys();
    return group;
  }

  void read_reserve(TableReader& of_device, DeviceGroup& group) {
    const spec::TomlTable* table = of_device.table("reserve_gib", TableSource::Optional);
    if (!table) return;
    TableReader keys = reader(*table, of_device.path_of("reserve_gib"));
    const NumberRule rule{.lower = NumberRule::End::Closed, .given = TableSource::Optional};
    for (const auto& [name, bytes] : kReserveParts) keys.read(name, rule, kGib, group.reserve.*bytes);
    keys.refuse_unknown_keys();
    if (group.memory_bytes > 0 && group.usable_bytes() <= 0) {
      of_device.refuse("reserve_gib", "must add up to less than memory_gib");
    }
  }

  void read_peaks(TableReader keys, const spec::TomlTable& table, DeviceGroup& group) {
    if (table.empty()) keys.refuse("", cat("must hold the peak of one type at least, of ", types_text()));
    for (const auto name : braid::words(DType())) {
      double flops = 0;
      keys.read(std::string(name).c_str(), {.given = TableSource::Optional}, kTera, flops);
      if (flops > 0) group.peaks.push_back({*value_of<DType>(name), flops});
    }
    keys.refuse_unknown_keys(nearest_type);
  }

  struct RowsOf {
    const char *key, *size, *rule;
    const char* once = "must be in one row of its type only";
  };
  // Reads the rows of a list with `read_row`, which returns false if the row has a problem. `rule` says what rows must
  // be, and `size` is the key in which rows of one type differ.
  template <class Row, class ReadRow, class Order>
  void read_rows(TableReader& of_device, const RowsOf& list, std::vector<Row>& read, const ReadRow& read_row,
                 const Order& order) {
    const auto& [key, size, rule, once] = list;
    const spec::TomlList* rows = of_device.list(key, TableSource::Optional);
    for (size_t number = 0; rows && number < rows->size(); ++number) {
      const auto* table = (*rows)[number].as<spec::TomlTable>();
      if (!table) return of_device.refuse(key, rule);
      TableReader keys = reader(*table, of_device.path_of(cat(key, "[", number, "]")));
      Row row;
      if (!read_row(keys, row)) continue;  // a row with a problem is not compared with others
      const auto same = [&](const Row& other) { return order(other) == order(row); };
      if (std::ranges::any_of(read, same)) keys.refuse(size, once);
      read.push_back(row);
    }
    std::ranges::sort(read, {}, order);
  }

  static bool read_type(TableReader& keys, DType& type) {
    std::string name;
    keys.read("type", name);
    const auto known = value_of<DType>(name);
    const std::string meant = nearest_type(name);
    if (!known) keys.refuse("type", "must be one of " + types_text(), meant.empty() ? "" : spec::toml_text(meant));
    type = known.value_or(type);
    return known.has_value();
  }

  void read_shares(TableReader& of_device, DeviceGroup& group) {
    const auto read_row = [](TableReader& keys, ProductShare& row) {
      const bool known = read_type(keys, row.type);
      keys.read("gflop", {}, kGiga, row.flops);
      keys.read("share", {.most = 1}, 1, row.share);
      keys.refuse_unknown_keys();
      return known && row.flops > 0;
    };
    read_rows(of_device, {"efficiency", "gflop", "must be tables of type, gflop and share"}, group.shares, read_row,
              [](const ProductShare& row) { return std::pair(row.type, row.flops); });
  }

  void read_attention(TableReader& of_device, DeviceGroup& group) {
    const auto read_row = [](TableReader& keys, AttentionRate& row) {
      const bool known = read_type(keys, row.type);
      keys.read("context", {}, 1, row.context);
      keys.read("forward_tflops", {}, kTera, row.forward);
      keys.read("backward_tflops", {}, kTera, row.backward);
      keys.refuse_unknown_keys();
      return known && row.context > 0;
    };
    read_rows(of_device,
              {"attention", "context", "must be tables of type, context, forward_tflops and backward_tflops"},
              group.attention, read_row, [](const AttentionRate& row) { return std::pair(row.type, row.context); });
  }

  void read_streams(TableReader& of_device, DeviceGroup& group) {
    const auto read_row = [](TableReader& keys, StreamRate& row) {
      keys.read("mib", {}, kMib, row.bytes);
      keys.read("gbps", {}, kGiga, row.bytes_per_second);
      keys.refuse_unknown_keys();
      return row.bytes > 0;
    };
    read_rows(of_device, {"streams", "mib", "must be tables of mib and gbps"}, group.streams, read_row,
              [](const StreamRate& row) { return row.bytes; });
  }

  // Reads a link. `several` names the things that need it, if the cluster has several of them; null: the link is
  // optional.
  void read_link(const char* name, const char* rate, const char* several, Link& link) {
    const spec::TomlTable* table = root_.table(name, TableSource::Optional);
    if (!table && several) root_.refuse(name, cat("must be given where there are several ", several));
    if (!table) return;
    TableReader keys = reader(*table, name);
    keys.read(rate, {}, kGiga, link.bytes_per_second);
    keys.read("latency_us", {.lower = NumberRule::End::Closed}, kMicro, link.latency_seconds);
    keys.refuse_unknown_keys();
  }

  void read_all_reduces() {
    const auto read_row = [](TableReader& keys, AllReduceTime& row) {
      keys.read("ranks", row.ranks);
      keys.read("per_node", row.per_node);
      keys.read("mib", {}, kMib, row.bytes);
      keys.read("us", {}, kMicro, row.seconds);
      if (row.ranks < std::max(row.per_node, 2)) keys.refuse("ranks", "must be at least 2, and at least per_node");
      keys.refuse_unknown_keys();
      return row.bytes > 0;
    };
    read_rows(
        root_,
        {"all_reduce", "mib", "must be tables of ranks, per_node, mib and us", "must be in one row of its group only"},
        cluster_.all_reduces, read_row,
        [](const AllReduceTime& row) { return std::tuple(row.ranks, row.per_node, row.bytes); });
  }

  void read_host() {
    const spec::TomlTable* table = root_.table("host", TableSource::Optional);
    if (!table) return;
    TableReader keys = reader(*table, "host");
    keys.read("memory_gib", {}, kGib, cluster_.host.bytes);
    keys.read("link_gbps", {}, kGiga, cluster_.host.bytes_per_second);
    keys.refuse_unknown_keys();
  }

  void read_disk() {
    const spec::TomlTable* table = root_.table("disk", TableSource::Optional);
    if (!table) return;
    TableReader keys = reader(*table, "disk");
    keys.read("read_gbps", {}, kGiga, cluster_.disk.read_bytes_per_second);
    keys.read("write_gbps", {}, kGiga, cluster_.disk.write_bytes_per_second);
    keys.read("save_seconds", {.lower = NumberRule::End::Closed, .given = TableSource::Optional}, 1,
              cluster_.disk.save_seconds);
    keys.refuse_unknown_keys();
  }

  void read_failures() {
    const spec::TomlTable* table = root_.table("failures", TableSource::Optional);
    if (!table) return;
    TableReader keys = reader(*table, "failures");
    keys.read("mtbf_hours_per_device", {}, kHour, cluster_.failures.mtbf_seconds_per_device);
    keys.read("restart_seconds", {.lower = NumberRule::End::Closed}, 1, cluster_.failures.restart_seconds);
    keys.refuse_unknown_keys();
  }

  TableReader root_;
  const std::string& origin_;
  std::vector<Problem>& problems_;
  Cluster cluster_;
  int nodes_ = 0;  // 0: not given, or not readable
};

}  // namespace

Cluster parse_cluster(const std::string& text, const std::string& origin) {
  spec::TomlDocument document = spec::toml_document(text, origin);
  Cluster cluster;
  if (document.problems.empty()) cluster = Reading(document.root, origin, document.problems).cluster();
  if (!document.problems.empty()) throw ConfigError(std::move(document.problems));
  std::ranges::sort(cluster.devices, {}, [](const DeviceGroup& group) {
    return std::tuple(-std::ranges::max(group.peaks, {}, &PeakRate::flops).flops, group.name,
                      cluster_text({.devices = {group}}));
  });
  return cluster;
}

}  // namespace braid::plan
