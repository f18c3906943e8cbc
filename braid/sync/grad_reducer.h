// All-reduces the gradients of one bucket over the replicas: uncompressed, in a narrower type, compressed, or node by
// node.
//
// One thread, the rank's own. All ranks of a group start the same buckets in the same order, then advance all of them,
// then finish all of them. Afterwards all ranks hold the same bits. Bucket boundaries never change the result:
// compression works on slices, so a plan may be replaced between steps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::sync {

// Elements [begin, end), counted from a slice's first.
struct ElementRun {
  int64_t begin = 0, end = 0;
  bool operator==(const ElementRun&) const = default;
};

// The place of a parameter's gradient in the flat gradients.
struct GradSlice {
  std::string name;  // the parameter's
  int64_t begin = 0;
  std::vector<int64_t> shape;    // local
  std::vector<ElementRun> runs;  // all that is not padding, ascending; padding is zero and stays it
};

// A run of whole slices, reduced together. Elements between slices are zero and stay it.
struct BucketShape {
  int64_t begin = 0, end = 0;  // elements of the flat gradients
  std::vector<GradSlice> slices;
};

struct GradLayout {
  at::TensorOptions options;  // of the flat gradients: float32 or float64
  std::vector<BucketShape> buckets;
};

// A reducer's state of one parameter, kept from step to step.
struct ReducerState {
  // A residual is this replica's own and of the parameter's local shape. Directions are the same on all replicas.
  enum class Kind { Residual, Directions };
  Kind kind;
  std::string param;
  at::Tensor tensor;  // views the state: to be read, or overwritten in place, between steps
};

// Methods that communicate throw CommError.
class GradReducer {
 public:
  virtual ~GradReducer() = default;
  // Before the first start(), and again between steps when buckets change. Every plan has the same slices; state stays.
  virtual void plan(const GradLayout& layout) = 0;
  // `step` steps have been done.
  virtual void begin_step(int64_t /*step*/) {}
  // `grads`: the bucket's elements, contiguous, one dim, which this may read and write until finish(). Returns before
  // other ranks have arrived. Each bucket once per step.
  virtual void start(int bucket, const at::Tensor& grads) = 0;
  // Between start() and finish(): what has to happen in the middle. May wait for other ranks.
  virtual void advance(int /*bucket*/) {}
  // Blocks until the bucket's elements are their sum over the ranks (or what compression makes of it).
  virtual void finish(int bucket) = 0;
  // Return the bytes that this rank has sent, counted as in node_groups.h, and those of them that left the node, if the
  // reducer knows nodes.
  virtual int64_t bytes_sent() const = 0;
  virtual int64_t bytes_across_nodes() const { return 0; }
  // After plan().
  virtual std::vector<ReducerState> state() { return {}; }
};

// Gradients as they are: one all-reduce per bucket. In reproducible mode it continues the tree over microbatches.
class PlainReducer final : public GradReducer {
 public:
  // `group` outlives this.
  explicit PlainReducer(Communicator& group) : group_(group) {}

  void plan(const GradLayout& layout) override;
  void start(int bucket, const at::Tensor& grads) override;
  void finish(int bucket) override;
  int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  Communicator& group_;
  std::vector<Work> works_;  // by bucket
  int64_t bytes_sent_ = 0;
};

}  // namespace braid::sync
