// The data of some parameters in one flat buffer, whole or sharded in units (sharding.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "braid/param/disk_tensors.h"
#include "braid/param/memory_account.h"
#include "braid/param/parameter.h"
#include "braid/param/sharding.h"

namespace braid::param {

// The alignment of slices, in elements. It is also the block of reproducible norms, so shards can be cut here.
inline constexpr int64_t kSliceAlign = 1024;

// The places of parameters in a flat buffer.
struct FlatLayout {
  int64_t num_elements = 0;
  std::vector<ShardUnit> units;    // empty: nothing is sharded
  std::vector<int> unit_of_param;  // by Parameter::index; -1: nothing is sharded
};

// Returns the elements of a parameter that begin at `offset` of a flat buffer, in its local shape and without a graph.
at::Tensor slice_at(const at::Tensor& flat, int64_t offset, const mesh::Placement& placement);

// Sets the offsets of `params`, one after another. `block_of` has the first block of each parameter. Units begin at
// multiples of `unit_step`, a multiple of kSliceAlign; 0: there are no units.
FlatLayout lay_out(std::vector<Parameter>& params, const std::vector<int>& block_of, int64_t unit_step);

// A range of a flat buffer that this rank holds, 1-D.
struct HeldRange {
  int64_t begin = 0, end = 0;  // elements of the flat buffer
  at::Tensor data;
};

class FlatData {
 public:
  // Allocates zeros, on `disk` unless it is null, and makes the data of `params` views of them. Parts are of a buffer
  // that is sharded; of a whole one `sharding` is {}. REQUIRES: what is on a disk is sharded, if only in one part.
  FlatData(std::vector<Parameter>& params, const FlatLayout& layout, const Sharding& sharding,
           const at::TensorOptions& options, DiskTensors* disk = nullptr);

  // Returns the whole buffer or, if it is sharded, this rank's parts of its units, one after another.
  const at::Tensor& flat() const { return flat_; }
  // Returns the whole buffer as one range or, if it is sharded, this rank's part of each unit.
  const std::vector<HeldRange>& held() const { return held_; }

  // Returns the whole data of a unit, 1-D. If the buffer is sharded, this tensor and the parameters' data have memory
  // only between allocate_unit() and free_unit(). At other times, reading them throws a c10::Error that names the
  // parameters.
  const at::Tensor& unit(int number) const { return units_[number].data; }
  void allocate_unit(int number);
  void free_unit(int number);

  // Makes `flat` the buffer, and `params` views of it. REQUIRES: the buffer is whole.
  void bind(const at::Tensor& flat, std::vector<Parameter>& params);

 private:
  struct Unit {
    at::Tensor data;
    std::string why_released;
  };
  at::Tensor flat_;
  MemoryCategory units_are_;  // Communication if they are gathered from memory, Parameters if they are read from disk
  std::vector<Unit> units_;
  std::vector<HeldRange> held_;
};

}  // namespace braid::param
