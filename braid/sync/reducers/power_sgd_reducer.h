// PowerSGD: a gradient matrix M (n x m) is sent as a product of low rank, P Q^T with P (n x r) and Q (m x r). It is
// found by one step of power iteration from the last step's Q, with error feedback. Source: Vogels, Karimireddy, Jaggi,
// "PowerSGD" (NeurIPS 2019), algorithms 1 and 2.
//
//   P = sum over ranks of (M + residual) Q;   P made orthonormal
//   Q = sum over ranks of (M + residual)^T P;   the sum of the gradients becomes P Q^T
//
// A tensor of more than two dims is a matrix of its first dim by the product of the others. A tensor of one dim, or one
// that would not get smaller, is sent uncompressed.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/sync/reducers/codec.h"

namespace braid::sync {

// Makes `columns` orthonormal in place. `columns` is [rows, few], contiguous, float32 or float64. Uses Gram-Schmidt,
// twice for each column (Giraud et al. 2005: twice is enough). A column that depends linearly on those before it, up to
// rounding, becomes zero. Equal inputs give equal bits on every rank.
void make_orthonormal(const at::Tensor& columns);

class PowerSgdReducer final : public GradReducer {
 public:
  // `group` outlives this. `rank` is the largest rank r of a product. The first Q is random, a function of `seed` and
  // the parameter's name.
  PowerSgdReducer(Communicator& group, int rank, uint64_t seed) : group_(group), rank_(rank), seed_(seed) {}

  void plan(const GradLayout& layout) override;
  void start(int bucket, const at::Tensor& grads) override;
  void advance(int bucket) override;
  void finish(int bucket) override;
  int64_t bytes_sent() const override { return bytes_sent_; }
  std::vector<ReducerState> state() override;

  // Returns the rank r with which a gradient of this shape is sent; 0: it is sent uncompressed.
  static int64_t rank_of(const std::vector<int64_t>& shape, int rank);

 private:
  // Factors have tensors of their own. The bits of a product may depend on the alignment of its operands, and a
  // factor's place in a message depends on the buckets.
  struct Matrix {
    GradSlice slice;
    at::Tensor residual;              // residual + gradient, as [rows, columns]
    at::Tensor p, q;                  // [rows, r], [columns, r]
    at::Tensor p_message, q_message;  // views of the flight's messages
  };
  struct Whole {
    GradSlice slice;
    at::Tensor message;  // view of the flight's first message
  };
  struct Flight {
    at::Tensor first, second;  // messages: all P and uncompressed gradients; all Q
    std::vector<Matrix> matrices;
    std::vector<Whole> wholes;
    at::Tensor grads;
    Work work;
  };
  Flight make_flight(const BucketShape& bucket, const at::TensorOptions& options);
  Work send(const at::Tensor& message);
  void fill_directions(const std::string& param, const at::Tensor& q) const;
  void keep_directions(const Matrix& matrix);

  Communicator& group_;
  const int rank_;
  const uint64_t seed_;
  ErrorFeedback residual_;
  std::vector<BucketShape> buckets_;
  std::vector<Flight> flights_;                   // by bucket
  std::map<std::string, at::Tensor> directions_;  // by parameter: Q of the last step
  int64_t bytes_sent_ = 0;
};

}  // namespace braid::sync
