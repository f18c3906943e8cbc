#include "braid/param/tree_on_disk.h"

#include "braid/base/errors.h"

namespace braid::param {

TreeOnDisk::TreeOnDisk(DiskTensors& disk, WriteBehind& writes, int num_levels, int64_t length, at::ScalarType type)
    : disk_(disk), writes_(writes), is_taken_(static_cast<size_t>(num_levels)) {
  for (int level = 0; level < num_levels; ++level) {
    levels_.push_back(disk.zeros(length, type, MemoryCategory::Gradients));
  }
}

void TreeOnDisk::restart() {
  waiting_.clear();
  is_taken_.assign(is_taken_.size(), 0);
}

at::Tensor TreeOnDisk::add(int micro, at::Tensor gradient) {
  Node node{0, micro};
  for (; node.first < std::ssize(levels_); node = {node.first + 1, node.second / 2}) {
    const auto sibling = waiting_.find({node.first, node.second ^ 1});
    if (sibling == waiting_.end()) {
      keep(node, std::move(gradient));
      return {};
    }
    add_to(gradient, sibling);
  }
  check(waiting_.empty(), "a tree is whole when its root is");
  return gradient;
}

void TreeOnDisk::keep(Node node, at::Tensor sum) {
  char& is_taken = is_taken_[static_cast<size_t>(node.first)];
  if (is_taken) {
    waiting_[node] = std::move(sum);
    return;
  }
  is_taken = 1;
  waiting_[node] = at::Tensor();
  writes_.write(levels_[static_cast<size_t>(node.first)], sum, sum);
}

// The order of two addends does not change the bits of their sum.
void TreeOnDisk::add_to(const at::Tensor& sum, std::map<Node, at::Tensor>::iterator waiting) {
  const auto level = static_cast<size_t>(waiting->first.first);
  const at::Tensor in_memory = waiting->second;
  waiting_.erase(waiting);
  if (in_memory.defined()) {
    sum.add_(in_memory);
  } else {
    is_taken_[level] = 0;
    disk_.add_to(sum, levels_[level]);
  }
}

}  // namespace braid::param
