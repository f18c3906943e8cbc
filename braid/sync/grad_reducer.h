// All-reduces the gradients of one bucket over the replicas: uncompressed, in a narrower type, or compressed.
//
// Called from one thread, the rank's own. All ranks of a group start the same buckets in the same order, then advance
// all of them, then finish all of them. Afterwards all ranks hold the same bits. Bucket boundaries never change the
// result: compression works on slices, so a plan may be replaced between steps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/mesh/flat_range.h"

namespace braid::sync {

// The place of a parameter's gradient in the flat gradients.
struct GradSlice {
  std::string name;  // name of the parameter
  int64_t begin = 0;
  std::vector<int64_t> shape;          // local shape
  std::vector<mesh::ElementRun> runs;  // all elements but padding, ascending; padding stays zero
};

// A run of whole slices that are reduced together. Elements between slices stay zero.
struct BucketShape {
  int64_t begin = 0, end = 0;  // elements of the flat gradients
  std::vector<GradSlice> slices;
};

struct GradLayout {
  at::TensorOptions options;  // options of the flat gradients: float32 or float64
  std::vector<BucketShape> buckets;
};

// The state that a reducer keeps of one parameter from step to step.
struct ReducerState {
  // A residual is this replica's own and has the parameter's local shape. Directions are the same on all replicas.
  enum class Kind { Residual, Directions };
  Kind kind;
  std::string param;
  at::Tensor tensor;  // view of the state, which may be read, or overwritten in place, between steps
};

// A reducer of gradients over a group of ranks. Methods that communicate throw CommError.
class GradReducer {
 public:
  virtual ~GradReducer() = default;
  // Sets the layout. Called before the first start(), and between steps when buckets change. All layouts have the same
  // slices; state is kept.
  virtual void plan(const GradLayout& layout) = 0;
  // Begins a step. `step` is the number of steps done before.
  virtual void begin_step(int64_t /*step*/) {}
  // Starts a bucket, once per step. `grads` has the bucket's elements, contiguous and 1-D; this may read and write them
  // until finish(). Does not wait for other ranks.
  virtual void start(int bucket, const at::Tensor& grads) = 0;
  // Does the middle part of a reduction that has several parts. Called between start() and finish(). May wait for other
  // ranks.
  virtual void advance(int /*bucket*/) {}
  // Blocks until the bucket's elements are their sum over the ranks, or the approximation of it that compression gives.
  virtual void finish(int bucket) = 0;
  // Returns true if the elements of a bucket that was started are the sum already, before finish().
  virtual bool is_final(int /*bucket*/) const { return false; }
  // Returns the bytes that this rank has sent, counted as in ring_bytes.h.
  virtual int64_t bytes_sent() const = 0;
  // Returns views of the state. REQUIRES: plan() was called.
  virtual std::vector<ReducerState> state() { return {}; }
};

// A reducer without compression: one all-reduce per bucket. In reproducible mode the all-reduce continues the tree over
// microbatches.
class PlainReducer final : public GradReducer {
 public:
  // `group` outlives this.
  explicit PlainReducer(Communicator& group) : group_(group) {}

  void plan(const GradLayout& layout) override;
  void start(int bucket, const at::Tensor& grads) override;
  void finish(int bucket) override;
  bool is_final(int bucket) const override { return works_[bucket].done(); }
  int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  Communicator& group_;
  std::vector<Work> works_;  // by bucket
  int64_t bytes_sent_ = 0;
};

}  // namespace braid::sync
