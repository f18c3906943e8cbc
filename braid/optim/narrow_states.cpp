#include "braid/optim/narrow_states.h"

#include "braid/optim/quantized_states.h"

namespace braid::optim {
namespace {

constexpr int64_t kNarrowBlock = param::ParamStore::kAlign;
static_assert(kNarrowBlock % kStateBlock == 0);

uint8_t* codes_of(std::byte* state) { return reinterpret_cast<uint8_t*>(state); }

}  // namespace

NarrowStates NarrowStates::from(int64_t blocks) const {
  NarrowStates later = *this;
  later.first_block += blocks;
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i]) later.at[i] += blocks * kNarrowBlock * (type == StateType::BFloat16 ? sizeof(Bf16) : sizeof(uint8_t));
    if (scales[i]) later.scales[i] += blocks * kNarrowBlock / kStateBlock;
  }
  return later;
}

void read_state(const NarrowStates& states, size_t i, WideBlock& to) {
  if (states.type == StateType::BFloat16) return widen_block(reinterpret_cast<const Bf16*>(states.at[i]), to.data());
  dequantize(codes_of(states.at[i]), states.scales[i], kNarrowBlock, states.signs[i], to.data());
}

void store_states(const std::array<WideBlock, 2>& from, const NarrowStates& states) {
  std::array<uint32_t, kNarrowBlock> words;
  if (states.rounding) states.rounding->draw(states.first_block, states.step, words.data());
  for (size_t i = 0; i < states.at.size(); ++i) {
    if (!states.at[i]) continue;
    if (states.type == StateType::BFloat16) {
      round_block(from[i].data(), words.data(), static_cast<int>(i), reinterpret_cast<Bf16*>(states.at[i]));
    } else {
      quantize(from[i].data(), kNarrowBlock, states.signs[i], codes_of(states.at[i]), states.scales[i]);
    }
  }
}

}  // namespace braid::optim
