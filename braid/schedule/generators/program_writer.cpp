// The writer of a program, with counters per chunk. It does not check that the whole order is valid (validate.h).
#include "braid/schedule/generators/program_writer.h"

#include "braid/base/errors.h"

namespace braid::schedule {

void ProgramWriter::put(Op op, const Chunk& chunk, int count, Fusion fusion) {
  program_.push_back({op, chunk.stage, chunk.first_micro + count, fusion});
}

void ProgramWriter::forward(int chunk, Fusion fusion) {
  put(Op::Forward, chunks_[chunk], chunks_[chunk].forwards++, fusion);
}

void ProgramWriter::full_backward(int chunk) {
  check(chunks_[chunk].input_grads == chunks_[chunk].weight_grads, "a full backward overtakes a weight pass");
  put(Op::FullBackward, chunks_[chunk], chunks_[chunk].input_grads++);
  ++chunks_[chunk].weight_grads;
}

void ProgramWriter::input_grad(int chunk) {
  put(Op::InputGrad, chunks_[chunk], chunks_[chunk].input_grads++);
  waiting_.push_back(chunk);
}

void ProgramWriter::weight_grad(int chunk) { put(Op::WeightGrad, chunks_[chunk], chunks_[chunk].weight_grads++); }

void ProgramWriter::oldest_weight_grad() {
  check(oldest_ < waiting_.size(), "a weight pass before its input-gradient pass");
  weight_grad(waiting_[oldest_++]);
}

void ProgramWriter::fused(int forward_chunk, int backward_chunk) {
  forward(forward_chunk, Fusion::WithNext);
  full_backward(backward_chunk);
}

}  // namespace braid::schedule
