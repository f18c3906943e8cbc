// The letters that tensor ranks split.
#include "braid/layout/dims_placement.h"

#include <algorithm>
#include <string_view>

#include "braid/model/shape.h"

namespace braid::layout {
namespace {

bool is_split(const model::Dim& dim) {
  return model::kTensorLetters.find(dim.segments[0][0]) != std::string_view::npos;
}

// Key heads without their queries have fewer parts than there are ranks if there are fewer of them.
int num_parts(const ModelSpec& spec, std::string_view letters, int ranks) {
  const bool has = letters.find('k') != letters.npos, shares = letters.find('m') == letters.npos;
  return has && shares ? model::key_head_parts(spec, ranks) : ranks;
}

}  // namespace

mesh::Placement placement_of(const ModelSpec& spec, const model::Extents& extents, const model::Dims& dims,
                             mesh::Share share) {
  const mesh::Index shape = extents.shape(dims);
  const auto split = std::ranges::find_if(dims, is_split);
  if (split == dims.end()) return mesh::replicated(shape);
  const int dim = static_cast<int>(split - dims.begin());
  if (split->segments[0] == "v") return mesh::split_dim(shape, dim, model::padded_vocab(spec, share.parts), share);
  std::vector<mesh::Segment> segments;
  for (const std::string& letters : split->segments) {
    segments.push_back({static_cast<int64_t>(extents.of(letters)), num_parts(spec, letters, share.parts)});
  }
  return mesh::split_segments(shape, dim, segments, share);
}

mesh::Placement placement_of_value(const ModelSpec& spec, const model::Extents& extents, const model::Dims& dims,
                                   mesh::Share share, Sequence tokens) {
  if (tokens == Sequence::Whole || !splits_tokens(dims)) return placement_of(spec, extents, dims, share);
  const auto is_tokens = [](const model::Dim& dim) { return dim.segments[0] == "t"; };
  const int dim = static_cast<int>(std::ranges::find_if(dims, is_tokens) - dims.begin());
  const mesh::Index shape = extents.shape(dims);
  return mesh::split_dim(shape, dim, shape[static_cast<size_t>(dim)], share);
}

}  // namespace braid::layout
