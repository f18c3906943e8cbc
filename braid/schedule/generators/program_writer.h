// Writes one rank's program. A rule of a schedule says which pass of which chunk comes next; which microbatch that is
// follows, because every pass of a stage takes its microbatches in ascending order.
#pragma once

#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

class ProgramWriter {
 public:
  // One stage of the rank, and the first microbatch that passes it there.
  struct Chunk {
    int stage = 0;
    int first_micro = 0;
    int forwards = 0, input_grads = 0, weight_grads = 0;  // done; B counts as both of the last
  };

  // Appends to `program`, which the writer does not own.
  ProgramWriter(Program& program, std::vector<Chunk> chunks) : program_(program), chunks_(std::move(chunks)) {}

  const Chunk& chunk(int index) const { return chunks_[index]; }

  void forward(int chunk, Fusion fusion = Fusion::None);
  void full_backward(int chunk);
  void input_grad(int chunk);  // its weight pass waits
  void weight_grad(int chunk);
  void oldest_weight_grad();  // of the chunk whose weight pass has waited longest
  // Forward of one chunk and backward of another as one action.
  void fused(int forward_chunk, int backward_chunk);

 private:
  void put(Op op, const Chunk& chunk, int count, Fusion fusion = Fusion::None);

  Program& program_;
  std::vector<Chunk> chunks_;
  std::vector<int> waiting_;  // chunks in the order of their input-gradient passes
  size_t oldest_ = 0;         // in waiting_
};

}  // namespace braid::schedule
