// The random generator of a rank: one Mersenne Twister, reseeded for each key.
#include "braid/param/rank_generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "braid/base/seeds.h"

namespace braid::param {

RankGenerator::RankGenerator() : generator_(at::detail::createCPUGenerator()) {}

at::Generator& RankGenerator::at_key(uint64_t key) {
  const std::lock_guard<std::mutex> lock(generator_.mutex());
  // LibTorch's engine reads only the low 32 bits of a seed. The key is mixed first, so that keys that differ only in
  // higher bits give different seeds.
  generator_.set_current_seed(random_bits(key, 0));
  return generator_;
}

}  // namespace braid::param
