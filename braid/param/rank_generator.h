// A random generator of one's own, set by a key. The process-wide default generator is never touched.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>

namespace braid::param {

class RankGenerator {
 public:
  RankGenerator();
  // The generator at the start of the stream of `key`: the same key gives the same numbers on every rank.
  at::Generator& at_key(uint64_t key);

 private:
  at::Generator generator_;
};

}  // namespace braid::param
