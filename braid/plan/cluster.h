// The devices that a run may have: their rates, memory, links and failures. Plain numbers, read by cluster_file.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/base/word.h"
#include "braid/spec/train_spec.h"

namespace braid::plan {

using braid::operator<<;  // writes enums as their words

// The units of cluster files and tables.
inline constexpr double kMib = 1 << 20, kGib = 1 << 30;  // bytes
inline constexpr double kGiga = 1e9, kTera = 1e12, kMicro = 1e-6;
inline constexpr double kHour = 3600;  // seconds

// The fraction of a device's peak that a matrix product of `flops` operations reaches.
struct ProductShare {
  DType type = DType::Float32;
  double flops = 0;
  double share = 1;

  bool operator==(const ProductShare&) const = default;
};

// The rate of fused attention over sequences of `context` tokens, in operations per second. Only operations on tokens
// that the causal mask leaves visible count.
struct AttentionRate {
  DType type = DType::Float32;
  double context = 0;
  double forward = 0, backward = 0;

  bool operator==(const AttentionRate&) const = default;
};

// The rate at which tensors of `bytes` bytes are read and written. Tensors that fit into a cache exceed the memory's
// rate.
struct StreamRate {
  double bytes = 0;
  double bytes_per_second = 0;

  bool operator==(const StreamRate&) const = default;
};

struct PeakRate {
  DType type = DType::Float32;
  double flops = 0;  // operations per second

  bool operator==(const PeakRate&) const = default;
};

// Memory of a device that is not available to the run's tensors, in bytes, by its use.
struct Reserve {
  double context = 0;        // the driver's context and the kernels of loaded libraries
  double nccl = 0;           // buffers of NCCL communicators
  double fragmentation = 0;  // blocks that the allocator holds but cannot hand out

  double total() const { return context + nccl + fragmentation; }
  bool operator==(const Reserve&) const = default;
};

struct ReservePart {
  const char* name;
  double Reserve::*bytes;
};
inline constexpr ReservePart kReserveParts[] = {
    {"context", &Reserve::context}, {"nccl", &Reserve::nccl}, {"fragmentation", &Reserve::fragmentation}};

// Devices of one kind. Each node of the group has the same number of them. On a CPU host a device is a core.
struct DeviceGroup {
  std::string name;
  int per_node = 1;
  int nodes = 1;
  double memory_bytes = 0;             // memory of each device
  double memory_bytes_per_second = 0;  // rate of each device's memory
  std::vector<PeakRate> peaks;
  std::vector<ProductShare> shares;      // sorted by type, then flops; empty: all products reach the peak
  std::vector<AttentionRate> attention;  // sorted by type, then context; empty: timed as a product
  std::vector<StreamRate> streams;       // sorted by bytes; empty: the memory's rate for all tensors
  double skew = 0;                       // time that tensor ranks wait for the slowest / their compute time
  bool shared_cores = false;             // true: CPU cores; ranks may use several of their node, or share one
  bool bfloat16_products = false;        // true: bfloat16 factors are multiplied without float32 copies
  Reserve reserve;

  int64_t num_devices() const { return int64_t{per_node} * nodes; }
  double usable_bytes() const { return memory_bytes - reserve.total(); }
  bool operator==(const DeviceGroup&) const = default;
};

// The link of one device. One message takes `latency_seconds` + bytes / `bytes_per_second`, in one direction.
struct Link {
  double bytes_per_second = 0;
  double latency_seconds = 0;

  bool operator==(const Link&) const = default;
};

// The measured time of an all-reduce over `ranks` ranks, `per_node` of them on each node. Each rank has `bytes` bytes.
struct AllReduceTime {
  int ranks = 2, per_node = 2;
  double bytes = 0;
  double seconds = 0;

  bool across_nodes() const { return ranks > per_node; }
  bool operator==(const AllReduceTime&) const = default;
};

// The disk of a node. Rates are 0 if there is none.
struct Disk {
  double read_bytes_per_second = 0;
  double write_bytes_per_second = 0;
  double save_seconds = 0;  // fixed cost of a save: creating files, agreement of ranks, renaming

  bool operator==(const Disk&) const = default;
};

// The host memory of a node for offloading. Both numbers are 0 if there is none.
struct HostMemory {
  double bytes = 0;             // memory of one node
  double bytes_per_second = 0;  // rate between host memory and each device, in one direction

  bool operator==(const HostMemory&) const = default;
};

struct Failures {
  double mtbf_seconds_per_device = 0;  // mean time between failures of one device; 0: no device fails
  double restart_seconds = 0;

  bool operator==(const Failures&) const = default;
};

// The source of a cluster's rates: braid's own measurements (braid doctor), or data sheets and estimates.
enum class RatesFrom { DataSheet, Measured };
constexpr auto words(RatesFrom) { return std::to_array<std::string_view>({"data-sheet", "measured"}); }

struct Cluster {
  std::string name;
  std::vector<DeviceGroup> devices;  // at least one; the first ranks are on the nodes of the first kind
  Link node;                         // link between devices of one node
  Link network;                      // link between nodes
  Disk disk;
  Failures failures;
  HostMemory host;
  RatesFrom rates = RatesFrom::DataSheet;
  std::vector<AllReduceTime> all_reduces;  // sorted by ranks, per_node, bytes
  int server_nodes = 0;                    // further nodes, which run only parameter servers

  int num_nodes() const;
  int64_t num_devices() const;
  int least_per_node() const;
  const DeviceGroup& with_least_memory() const;  // the kind with the smallest usable_bytes()
  bool operator==(const Cluster&) const = default;
};

}  // namespace braid::plan
