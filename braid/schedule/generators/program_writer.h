// Writes one rank's program. The caller chooses the next pass and its chunk. The writer knows the microbatch, since
// every pass of a stage takes its microbatches in ascending order.
#pragma once

#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

class ProgramWriter {
 public:
  // A stage of the rank, and the first microbatch that passes the stage on this rank.
  struct Chunk {
    int stage = 0;
    int first_micro = 0;
    int forwards = 0, input_grads = 0, weight_grads = 0;  // passes done; B counts as an input and a weight gradient
  };

  // Appends to `program`, which the writer does not own.
  ProgramWriter(Program& program, std::vector<Chunk> chunks) : program_(program), chunks_(std::move(chunks)) {}

  const Chunk& chunk(int index) const { return chunks_[index]; }

  void forward(int chunk, Fusion fusion = Fusion::None);
  void full_backward(int chunk);
  void input_grad(int chunk);  // the weight pass is added later
  void weight_grad(int chunk);
  void oldest_weight_grad();  // adds the weight pass that has waited longest
  // Adds a forward of one chunk and a full backward of another as a fused pair.
  void fused(int forward_chunk, int backward_chunk);

 private:
  void put(Op op, const Chunk& chunk, int count, Fusion fusion = Fusion::None);

  Program& program_;
  std::vector<Chunk> chunks_;
  std::vector<int> waiting_;  // chunks in the order of their input-gradient passes
  size_t oldest_ = 0;         // index in waiting_ of the next weight pass
};

}  // namespace braid::schedule
