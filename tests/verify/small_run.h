// A small run for comparisons of layouts.
#pragma once

#include <string>

#include "braid/base/text.h"
#include "braid/verify/shrunk_run.h"
#include "braid/verify/verdict.h"

namespace braid::verify {

// Two layers of four heads, eight sequences in four microbatches, in float64.
inline RunSpec small_run() {
  RunSpec run;
  run.model.layers = 2;
  run.model.heads = 4;
  run.model.width = 16;
  run.model.context = 8;
  run.model.vocab = 29;
  run.model.vocab_multiple = 1;
  run.model.init_std = 0.2;
  run.sync.bucket_mb = 0.02;
  run.sync.first_bucket_mb = 0.01;
  run.optimizer.clip_norm = 0.5;
  run.train.batch = 8;
  run.train.microbatch = 1;
  run.train.dtype = DType::Float64;
  return run;
}

inline std::string text_of(const Verdict& verdict) {
  std::string text;
  if (const auto& first = verdict.first_divergence) {
    text += cat("step ", first->step, " ", word(first->phase), " | ", first->op, " | ", first->tensor, " | ranks");
    for (const int rank : first->ranks) text += cat(" ", rank);
    text += cat(" | ", first->relative, " > ", first->bound, "\n");
  }
  for (const Row& row : verdict.rows) {
    text += cat(row.equal ? "  " : "X ", word(row.phase), " ", row.tensor, " ", row.relative, " of ", row.bound, "\n");
  }
  return text;
}

}  // namespace braid::verify
