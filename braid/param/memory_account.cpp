// A CPU allocator that puts a tag of 64 bytes in front of each block; the block stays aligned to 64 bytes. Large blocks
// are kept for reuse (block_cache.h). c10 allocates the memory, so the alignment does not change.
#include "braid/param/memory_account.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/memory_error.h"
#include "braid/base/text.h"
#include "braid/param/block_cache.h"

namespace braid::param {
namespace {

constexpr int kMaxRanks = 1024;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

struct Gauge {
  std::atomic<int64_t> now{0}, peak{0};

  void add(int64_t bytes) {
    const int64_t value = now.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t seen = peak.load(std::memory_order_relaxed);
    while (value > seen && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
  }
  void reset_peak() { peak.store(now.load(std::memory_order_relaxed), std::memory_order_relaxed); }
  void begin_as(const Gauge& other) {
    now = other.now.load();
    peak = other.peak.load();
  }
};

struct alignas(64) RankGauges {
  std::array<Gauge, kNumMemoryCategories> categories;
  Gauge total, beside_parameters;
  std::atomic<int64_t> uncounted{0};  // of UncountedScope, in no other number
  std::atomic<int64_t> limit{kNoLimit};

  int64_t left() const {
    const int64_t most = limit.load(std::memory_order_relaxed);
    return most == kNoLimit ? most : most - total.now.load(std::memory_order_relaxed) - uncounted.load();
  }

  void begin_as(const RankGauges& other) {
    for (int c = 0; c < kNumMemoryCategories; ++c) categories[c].begin_as(other.categories[c]);
    total.begin_as(other.total);
    beside_parameters.begin_as(other.beside_parameters);
    uncounted = other.uncounted.load();
    limit = other.limit.load();
  }
};

// Returns where this process counts: in memory of its own, or in that of a SharedAccounts.
std::atomic<RankGauges*>& all_gauges() {
  static std::array<RankGauges, kMaxRanks> own;
  static std::atomic<RankGauges*> all{own.data()};
  return all;
}

RankGauges& gauges(int rank) {
  check(0 <= rank && rank < kMaxRanks, "memory is accounted to ranks 0 .. 1023");
  return all_gauges().load(std::memory_order_relaxed)[rank];
}

// The tag of this thread's allocations. With rank -1 they belong to no rank.
struct Tag {
  int rank = -1;
  MemoryCategory category = MemoryCategory::Other;
  bool is_uncounted = false;  // in an UncountedScope
};

Tag& this_thread() {
  thread_local Tag tag;
  return tag;
}

struct alignas(64) Header {
  int64_t bytes;
  Tag tag;

  void count(int64_t change) const {
    if (tag.rank < 0) return;
    RankGauges& rank = gauges(tag.rank);
    if (tag.is_uncounted) {
      rank.uncounted += change;
      return;
    }
    rank.categories[static_cast<int>(tag.category)].add(change);
    rank.total.add(change);
    if (tag.category != MemoryCategory::Parameters) rank.beside_parameters.add(change);
  }
};

// Describes one of the two numbers of each gauge.
std::string text_of(const RankGauges& rank, std::atomic<int64_t> Gauge::*number = &Gauge::now) {
  std::vector<std::string> parts;
  for (int c = 0; c < kNumMemoryCategories; ++c) {
    const int64_t own = (rank.categories[c].*number).load(std::memory_order_relaxed);
    if (own > 0) parts.push_back(cat(text(MemoryCategory(c)), " ", human_bytes(static_cast<double>(own))));
  }
  const auto held = static_cast<double>((rank.total.*number).load(std::memory_order_relaxed));
  return cat(human_bytes(held), parts.empty() ? "" : cat(" (", joined(parts), ")"));
}

// Throws if `bytes` more would exceed the limit of the rank that `tag` names.
void require_within_limit(const Tag& tag, int64_t bytes) {
  if (tag.rank < 0) return;
  const RankGauges& rank = gauges(tag.rank);
  if (bytes <= rank.left()) return;
  const int64_t limit = rank.limit.load(std::memory_order_relaxed);
  throw MemoryError(cat("rank ", tag.rank, " needs ", human_bytes(static_cast<double>(bytes)), " more for ",
                        tag.is_uncounted ? "a measurement" : text(tag.category), ", beyond memory.limit_gb (",
                        human_bytes(static_cast<double>(limit)), "); it holds ", text_of(rank)),
                    {tag.rank, rank.total.now, bytes, limit});
}

// Never destroyed: blocks outlive static destruction.
BlockCache& blocks() {
  static auto* const cache = new BlockCache;
  return *cache;
}

// Allocates a block. Replaces c10's error, whose text reads like a fault in the program and contains addresses. The
// message has the account of the rank for which this thread allocates.
void* block_of(size_t bytes) {
  try {
    return blocks().allocate(bytes);
  } catch (const c10::Error&) {
    const int rank = this_thread().rank;
    const int64_t held = rank < 0 ? 0 : gauges(rank).total.now.load();
    throw MemoryError(cat("there is no memory for ", human_bytes(static_cast<double>(bytes)), " more",
                          rank < 0 ? "" : cat("; rank ", rank, " holds ", text_of(gauges(rank)))),
                      {rank, held, static_cast<int64_t>(bytes), 0});
  }
}

void free_tagged(void* block) {
  if (block == nullptr) return;
  Header* header = static_cast<Header*>(block) - 1;
  header->count(-header->bytes);
  blocks().free(header, static_cast<size_t>(header->bytes) + sizeof(Header));
}

class TaggedAllocator final : public c10::Allocator {
 public:
  // Data and context are the same pointer, as raw_allocate and release_context need.
  c10::DataPtr allocate(size_t bytes) override {
    void* block = nullptr;
    if (bytes > 0) {
      require_within_limit(this_thread(), static_cast<int64_t>(bytes));
      Header* header = static_cast<Header*>(block_of(bytes + sizeof(Header)));
      *header = {static_cast<int64_t>(bytes), this_thread()};
      header->count(header->bytes);
      block = header + 1;
    }
    return {block, block, &free_tagged, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_tagged; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

}  // namespace

std::string text(MemoryCategory category) {
  static constexpr std::array<const char*, kNumMemoryCategories> kNames{
      "parameters", "gradients", "optimizer", "activations", "communication", "servers", "snapshots", "other"};
  return kNames.at(static_cast<size_t>(category));
}

void install_memory_accounting() {
  // Never destroyed: blocks outlive static destruction.
  static TaggedAllocator* const allocator = [] {
    auto* made = new TaggedAllocator;
    c10::SetCPUAllocator(made, 100);
    return made;
  }();
  check(c10::GetCPUAllocator() == allocator, "no other allocator replaced the accounting one");
}

void account_memory_to(int rank) {
  gauges(rank);
  this_thread().rank = rank;
}

std::optional<int> accounted_rank() {
  const Tag& tag = this_thread();
  return tag.rank < 0 || tag.is_uncounted ? std::nullopt : std::optional(tag.rank);
}

std::optional<MemoryCategory> category_of(const c10::DataPtr& memory) {
  if (memory.get_deleter() != &free_tagged || memory.get() == nullptr) return std::nullopt;
  return (static_cast<const Header*>(memory.get()) - 1)->tag.category;
}

MemoryScope::MemoryScope(MemoryCategory category) : before_(this_thread().category) {
  this_thread().category = category;
}
MemoryScope::~MemoryScope() { this_thread().category = before_; }

UncountedScope::UncountedScope() : before_(std::exchange(this_thread().is_uncounted, true)) {}
UncountedScope::~UncountedScope() { this_thread().is_uncounted = before_; }

UncountedBytes::UncountedBytes(int64_t bytes) : rank_(this_thread().rank), bytes_(bytes) {
  Tag tag = this_thread();
  tag.is_uncounted = true;
  require_within_limit(tag, bytes);
  if (rank_ >= 0) gauges(rank_).uncounted += bytes_;
}
UncountedBytes::~UncountedBytes() {
  if (rank_ >= 0) gauges(rank_).uncounted -= bytes_;
}

int64_t bytes_left() {
  const int rank = this_thread().rank;
  return rank < 0 ? kNoLimit : gauges(rank).left();
}

// Keeps freed blocks within the sum of the limits of this process's ranks.
void limit_memory(int rank, int64_t bytes) {
  const int64_t before = gauges(rank).limit.exchange(bytes > 0 ? bytes : kNoLimit);
  blocks().raise_limit(bytes - (before == kNoLimit ? 0 : before));
}

SharedAccounts::SharedAccounts() : own_(all_gauges()) {
  void* const shared = ::mmap(nullptr, kMaxRanks * sizeof(RankGauges), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (shared == MAP_FAILED) throw RunError(cat("no memory to share with ranks: ", std::strerror(errno)));
  auto* const all = static_cast<RankGauges*>(shared);
  for (int rank = 0; rank < kMaxRanks; ++rank) (new (all + rank) RankGauges())->begin_as(gauges(rank));
  all_gauges() = all;
}

SharedAccounts::~SharedAccounts() {
  ::munmap(all_gauges().exchange(static_cast<RankGauges*>(own_)), kMaxRanks * sizeof(RankGauges));
}

MemoryUse memory_use(int rank) {
  const RankGauges& of = gauges(rank);
  MemoryUse use;
  for (int c = 0; c < kNumMemoryCategories; ++c) {
    use.bytes[c] = of.categories[c].now.load(std::memory_order_relaxed);
    use.peak_bytes[c] = of.categories[c].peak.load(std::memory_order_relaxed);
  }
  use.peak_total_bytes = of.total.peak.load(std::memory_order_relaxed);
  return use;
}

int64_t held_bytes(int rank) { return gauges(rank).total.now.load(std::memory_order_relaxed); }

int64_t peak_beside_parameters(int rank) { return gauges(rank).beside_parameters.peak.load(std::memory_order_relaxed); }

std::string account_text(int rank) { return text_of(gauges(rank)); }

std::string peak_text(int rank) { return text_of(gauges(rank), &Gauge::peak); }

void reset_memory_peak(int rank) {
  RankGauges& of = gauges(rank);
  for (Gauge& gauge : of.categories) gauge.reset_peak();
  of.total.reset_peak();
  of.beside_parameters.reset_peak();
}

}  // namespace braid::param
