// A random generator that is set by a key. It never uses the process-wide default generator.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>

namespace braid::param {

class RankGenerator {
 public:
  RankGenerator();
  // Returns the generator at the start of the stream of `key`. The same key gives the same numbers on every rank.
  at::Generator& at_key(uint64_t key);

 private:
  at::Generator generator_;
};

}  // namespace braid::param
