// Dropout by keys. The generator is seeded for each mask, which costs less than the mask of any activation worth
// dropping.
#include "braid/module/keyed_dropout.h"

#include <ATen/ops/empty.h>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/param/rank_generator.h"

namespace braid {

KeyedDropoutImpl::KeyedDropoutImpl(double probability, uint64_t seed) : probability_(probability), seed_(seed) {
  if (!(probability >= 0 && probability < 1)) {
    throw ConfigError({{"probability", cat(probability), "must be at least 0 and below 1", ""}});
  }
}

void KeyedDropoutImpl::begin_microbatch(const modules::MicrobatchContext& context) {
  uint64_t key = stream_key(seed_, "braid.keyed_dropout");
  for (const int64_t part : {context.step, context.micro, context.place}) {
    key = random_bits(key, static_cast<uint64_t>(part));
  }
  key_ = key;
  uses_ = 0;
}

std::function<void()> KeyedDropoutImpl::capture_state() {
  return [this, key = key_, uses = uses_] {
    key_ = key;
    uses_ = uses;
  };
}

at::Tensor KeyedDropoutImpl::forward(at::Tensor x) {
  if (!is_training() || probability_ == 0) return x;
  if (!key_) {
    throw ConfigError({{"KeyedDropout", "",
                        "must receive its microbatch, by ModulePipeline, DataParallel or begin_microbatch()", ""}});
  }
  param::RankGenerator generator;
  at::Generator& stream = generator.at_key(random_bits(*key_, uses_++));
  at::Tensor mask = at::empty(x.sizes(), x.options().device(at::kCPU).requires_grad(false));
  mask.bernoulli_(1 - probability_, stream).div_(1 - probability_);
  return x * mask.to(x.device());
}

}  // namespace braid
