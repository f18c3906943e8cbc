#include "braid/train/saved_states.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/mesh/element_blocks.h"
#include "braid/optim/quantized_states.h"
#include "braid/train/conversion_memory.h"

namespace braid::train {
namespace {

constexpr int64_t kConvertedAtOnce = 1024 * kStateBlock;

bool has_codes(const optim::OptimizerState& state) { return state.scales.defined(); }

// Returns true if the checkpoint has codes of a state; `otherwise` if it does not have the state.
bool has_saved_codes(const std::string& state, const ckpt::Manifest& manifest, bool otherwise) {
  const std::string prefix = state + "/";
  const auto saved = manifest.tensors.lower_bound(prefix);
  if (saved == manifest.tensors.end() || !saved->first.starts_with(prefix)) return otherwise;
  return saved->second.type == ckpt::ElementType::U8;
}

}  // namespace

std::vector<optim::OptimizerState> states_to_read(const std::vector<optim::OptimizerState>& states,
                                                  const ckpt::Manifest& manifest,
                                                  const std::optional<param::DiskSpace>& space) {
  std::vector<optim::OptimizerState> all = states;
  std::vector<at::Tensor*> to_read;
  std::vector<FlatShape> shapes;
  for (optim::OptimizerState& state : all) {
    const bool codes = has_saved_codes(state.name, manifest, has_codes(state));
    if (codes == has_codes(state)) continue;
    const int64_t length = state.flat.numel();
    state.scales = at::Tensor();
    to_read.push_back(&state.flat);
    shapes.push_back({length, codes ? at::kByte : at::kFloat});
    if (!codes) continue;
    to_read.push_back(&state.scales);
    shapes.push_back({length / kStateBlock, at::kFloat});
  }
  const std::vector<at::Tensor> memory = conversion_memory(shapes, space);
  for (size_t i = 0; i < memory.size(); ++i) *to_read[i] = memory[i];
  return all;
}

void refuse_parts_of_blocks(const std::vector<optim::OptimizerState>& read, const param::ParamStore& store,
                            Communicator& world) {
  const auto is_cut = [](const param::Parameter& param) {
    return !mesh::has_whole_blocks(param.placement, kStateBlock);
  };
  const bool cuts = std::ranges::any_of(read, has_codes) && std::ranges::any_of(store.params(), is_cut);
  if (!comm::agree_any(world, "parts of blocks", cuts)) return;
  throw ConfigError({{"mesh.tensor", "",
                      cat("must be 1, or such that each tensor rank has whole blocks of ", kStateBlock,
                          " elements: the checkpoint's optimizer.state_dtype is \"int8\""),
                      "1"}});
}

void take_states(const std::vector<optim::OptimizerState>& read, const std::vector<optim::OptimizerState>& states) {
  for (size_t i = 0; i < states.size(); ++i) {
    const optim::OptimizerState &from = read[i], &to = states[i];
    if (to.flat.is_same(from.flat)) continue;
    for (int64_t begin = 0; begin < to.flat.numel(); begin += kConvertedAtOnce) {
      const int64_t count = std::min(kConvertedAtOnce, to.flat.numel() - begin), scale = begin / kStateBlock;
      const at::Tensor in = from.flat.narrow(0, begin, count), out = to.flat.narrow(0, begin, count);
      if (has_codes(to)) {
        optim::quantize(in.const_data_ptr<float>(), count, to.sign, out.mutable_data_ptr<uint8_t>(),
                        to.scales.mutable_data_ptr<float>() + scale);
      } else {
        const at::Tensor wide = at::empty({count}, at::kFloat);
        optim::dequantize(in.const_data_ptr<uint8_t>(), from.scales.const_data_ptr<float>() + scale, count, to.sign,
                          wide.mutable_data_ptr<float>());
        out.copy_(wide);
      }
    }
  }
}

}  // namespace braid::train
