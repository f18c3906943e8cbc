// Reads the tensors from a model's graph and its family's names (model/families.h).
#include "braid/weights/hf_tensors.h"

#include <algorithm>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::weights {
namespace {

// Returns the row for a parameter whose name in its block, without ".weight" or ".bias", is `name`.
const model::HfRow& row_of(const std::vector<model::HfRow>& rows, const std::string& name) {
  const auto row = std::ranges::find(rows, name, &model::HfRow::ours);
  check(row != rows.end(), "every parameter of a family has a name at Hugging Face");
  return *row;
}

// A parameter of the model: its names in the whole model and in the block, and its dims.
struct NamedParam {
  std::string whole;
  std::string prefix;  // of Hugging Face's names
  const model::Param& param;
};

// Adds the tensors of a parameter: one, or one for each of its segments.
void add_parts(const NamedParam& named, const model::HfRow& row, const model::Extents& extents,
               std::vector<HfTensor>& all) {
  const mesh::Index shape = extents.shape(named.param.dims);
  const mesh::Index counts = row.theirs.size() > 1 ? extents.segments(named.param.dims[0]) : mesh::Index{shape[0]};
  check(counts.size() == row.theirs.size(), "Hugging Face names all segments of a parameter");
  const std::string end = named.param.name.substr(named.param.name.rfind('.'));
  const bool transposed = row.of_matrices == Orientation::Transposed && shape.size() == 2;
  int64_t first = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    mesh::Index part = shape;
    part[0] = counts[i];
    if (transposed) std::swap(part[0], part[1]);
    all.push_back({named.prefix + row.theirs[i] + end, part, named.whole, first, counts[i], shape,
                   transposed ? Orientation::Transposed : Orientation::Same});
    first += counts[i];
  }
}

}  // namespace

std::vector<HfTensor> hf_tensors(const ModelSpec& spec) {
  const model::ModelGraph graph = model::graph_of(spec);
  const model::Extents extents = model::extents_of(spec, 1, 1);
  const model::HfNames& names = model::family_of(spec).names;
  std::vector<HfTensor> all;
  std::set<std::string> seen;
  for (size_t block = 0; block < graph.blocks.size(); ++block) {
    const bool is_layer = block > 0 && block + 1 < graph.blocks.size();
    const std::string prefix = is_layer ? cat(names.layers, block - 1, ".") : "";
    for (const model::Op& op : graph.block(block).ops) {
      for (const model::Param& param : op.params) {
        const std::string whole = model::param_name(graph, block, param);
        if (!seen.insert(whole).second) continue;
        const std::string name = param.name.substr(0, param.name.rfind('.'));
        add_parts({whole, prefix, param}, row_of(is_layer ? names.in_layer : names.outside, name), extents, all);
      }
    }
  }
  return all;
}

std::vector<HfTensor> hf_carried(const ModelSpec& spec) {
  const model::Extents extents = model::extents_of(spec, 1, 1);
  const model::HfNames& names = model::family_of(spec).names;
  std::vector<HfTensor> all;
  for (const model::Param& param : names.carried) {
    const std::string name = param.name.substr(0, param.name.rfind('.'));
    add_parts({param.name, "", param}, row_of(names.of_carried, name), extents, all);
  }
  return all;
}

std::vector<HfTensor> hf_copies(const ModelSpec& spec) {
  if (spec.output_weights == OutputWeights::Tied) return {};
  std::vector<HfTensor> copies;
  const std::vector<HfTensor> all = hf_tensors(spec);
  for (const model::HfAlias& copy : model::family_of(spec).names.copies) {
    copies.push_back(*std::ranges::find(all, copy.other, &HfTensor::name));
    copies.back().name = copy.name;
  }
  return copies;
}

std::string hf_base_prefix(const ModelSpec& spec) { return model::family_of(spec).names.prefix; }

bool is_redundant(const ModelSpec& spec, const std::string& name) {
  const model::HfNames& names = model::family_of(spec).names;
  const auto is_of = [&](const model::HfAlias& copy) { return name == copy.name || name == copy.other; };
  if (std::ranges::any_of(names.copies, is_of)) return true;
  if (name == names.head) return spec.output_weights == OutputWeights::Tied;
  return std::ranges::any_of(model::family_of(spec).names.redundant,
                             [&](const std::string& end) { return name.ends_with(end); });
}

}  // namespace braid::weights
