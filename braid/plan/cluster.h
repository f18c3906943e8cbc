// The devices that a run may have: their rates, memory, links and failures. Plain numbers; cluster_file.h reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/spec/train_spec.h"
#include "braid/spec/word.h"

namespace braid::plan {

using braid::operator<<;  // enums as their words

// The units of cluster files and tables.
inline constexpr double kMib = 1 << 20, kGib = 1 << 30;  // bytes
inline constexpr double kGiga = 1e9, kTera = 1e12, kMicro = 1e-6;
inline constexpr double kHour = 3600;  // seconds

// The share of a device's peak that a matrix product of `flops` operations reaches.
struct ProductShare {
  DType type = DType::Float32;
  double flops = 0;
  double share = 1;

  bool operator==(const ProductShare&) const = default;
};

// The rate of fused attention over sequences of `context` tokens: operations per second, of visible tokens only.
struct AttentionRate {
  DType type = DType::Float32;
  double context = 0;
  double forward = 0, backward = 0;

  bool operator==(const AttentionRate&) const = default;
};

// The rate at which tensors of this size are read and written; in caches it is higher than memory's.
struct StreamRate {
  double bytes = 0;
  double bytes_per_second = 0;

  bool operator==(const StreamRate&) const = default;
};

struct PeakRate {
  DType type = DType::Float32;
  double flops = 0;  // a second

  bool operator==(const PeakRate&) const = default;
};

// Memory of a device that the tensors of a run cannot have, in bytes, by its use.
struct Reserve {
  double context = 0;        // the driver's context and the kernels of loaded libraries
  double nccl = 0;           // buffers of NCCL's communicators
  double fragmentation = 0;  // blocks that the allocator holds and cannot give out

  double total() const { return context + nccl + fragmentation; }
  bool operator==(const Reserve&) const = default;
};

struct ReservePart {
  const char* name;
  double Reserve::*bytes;
};
inline constexpr ReservePart kReserveParts[] = {
    {"context", &Reserve::context}, {"nccl", &Reserve::nccl}, {"fragmentation", &Reserve::fragmentation}};

// Devices of one kind, the same number on each of its nodes.
struct DeviceGroup {
  std::string name;
  int per_node = 1;
  int nodes = 1;
  double memory_bytes = 0;             // of each device
  double memory_bytes_per_second = 0;  // to and from its memory
  std::vector<PeakRate> peaks;
  std::vector<ProductShare> shares;      // in order of type, then flops; none: all products reach the peak
  std::vector<AttentionRate> attention;  // in order of type, then context; none: attention is a product
  std::vector<StreamRate> streams;       // in order of bytes; none: all as memory
  double skew = 0;                       // of what they compute, that tensor ranks wait for the slower one
  bool shared_cores = false;             // threads or processes that share their node's cores
  bool bfloat16_products = false;        // of such cores: they add products of bfloat16 up in float32 without copies
  Reserve reserve;

  int64_t num_devices() const { return int64_t{per_node} * nodes; }
  double usable_bytes() const { return memory_bytes - reserve.total(); }
  bool operator==(const DeviceGroup&) const = default;
};

// The cost of one message: `latency_seconds` + bytes / `bytes_per_second`, one way, for each device by itself.
struct Link {
  double bytes_per_second = 0;
  double latency_seconds = 0;

  bool operator==(const Link&) const = default;
};

// A measured all-reduce of so many bytes on each of `ranks` ranks, `per_node` of them on each node.
struct AllReduceTime {
  int ranks = 2, per_node = 2;
  double bytes = 0;
  double seconds = 0;

  bool across_nodes() const { return ranks > per_node; }
  bool operator==(const AllReduceTime&) const = default;
};

// The disk of a node; 0: there is none.
struct Disk {
  double read_bytes_per_second = 0;
  double write_bytes_per_second = 0;
  double save_seconds = 0;  // of a save however little it writes: files are created, ranks agree, names are moved

  bool operator==(const Disk&) const = default;
};

// The host memory of a node for offloading; 0: there is none.
struct HostMemory {
  double bytes = 0;             // of a node
  double bytes_per_second = 0;  // between it and each device, one way

  bool operator==(const HostMemory&) const = default;
};

struct Failures {
  double mtbf_seconds_per_device = 0;  // 0: none fails
  double restart_seconds = 0;

  bool operator==(const Failures&) const = default;
};

// The source of a cluster's rates: braid's own measurements (braid doctor), or data sheets and estimates.
enum class RatesFrom { DataSheet, Measured };
constexpr auto words(RatesFrom) { return std::to_array<std::string_view>({"data-sheet", "measured"}); }

struct Cluster {
  std::string name;
  std::vector<DeviceGroup> devices;  // at least one; ranks come on the nodes of the first kind first
  Link node;                         // between devices of a node
  Link network;                      // between nodes
  Disk disk;
  Failures failures;
  HostMemory host;
  RatesFrom rates = RatesFrom::DataSheet;
  std::vector<AllReduceTime> all_reduces;  // in order of ranks, per_node, bytes

  int num_nodes() const;
  int64_t num_devices() const;
  int least_per_node() const;
  const DeviceGroup& with_least_memory() const;  // the kind whose devices have the least usable_bytes()
  bool operator==(const Cluster&) const = default;
};

}  // namespace braid::plan
