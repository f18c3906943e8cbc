// Sums one unit's gradients over microbatches in the balanced binary tree of tree_sink() (grad_sink.h). The sums that
// wait for their sibling are on disk, one for each level, and are added to it chunk by chunk. In order of arrival:
//
//   level 2          0123          in memory  3, then 23, then 0123
//   level 1      01        23      on disk    01 and 2
//   level 0    0    1    2    3
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "braid/param/disk_tensors.h"
#include "braid/param/write_behind.h"

namespace braid::param {

class TreeOnDisk {
 public:
  // Makes a tree for gradients of `length` elements with `num_levels` below the root. REQUIRES: `disk` and `writes`
  // outlive this; the disk has space for one gradient for each level.
  TreeOnDisk(DiskTensors& disk, WriteBehind& writes, int num_levels, int64_t length, at::ScalarType type);

  // Forgets what waits, before a step.
  void restart();
  // Adds the gradient of microbatch `micro`, one of 2^num_levels. Returns the sum of all once it was the last; else an
  // undefined tensor, and the tree keeps the memory of `gradient`, which is on blocks (block_memory.h). Throws RunError
  // if the disk fails.
  at::Tensor add(int micro, at::Tensor gradient);

 private:
  using Node = std::pair<int, int>;  // level, index within the level
  void add_to(const at::Tensor& sum, std::map<Node, at::Tensor>::iterator waiting);
  void keep(Node node, at::Tensor sum);

  DiskTensors& disk_;
  WriteBehind& writes_;
  std::vector<at::Tensor> levels_;      // on disk: one waiting sum of each level
  std::vector<char> is_taken_;          // by level: 1 if a sum waits on disk
  std::map<Node, at::Tensor> waiting_;  // undefined: on disk; more sums of one level than one are in memory
};

}  // namespace braid::param
