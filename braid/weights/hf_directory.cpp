// The check of a directory's files against its model, and the reader of boxes through the table of names.
#include "braid/weights/hf_directory.h"

#include <algorithm>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/model/hf_config.h"
#include "braid/spec/problems.h"

namespace braid::weights {
namespace {

constexpr int64_t kMostElements = 4 << 20;  // most elements of one read

// Returns the rules about only the model that it breaks. `path` is the config.json that describes it.
std::vector<Problem> broken_rules(const ModelSpec& model, const std::string& path) {
  RunSpec spec;
  spec.model = model;
  spec.data.tokenizer = path;  // any tokenizer but "bytes", whose vocabulary is fixed
  std::vector<Problem> broken;
  for (Problem& problem : spec::problems(spec, spec::any_hosts(spec::Purpose::Plan))) {
    if (!problem.key.starts_with("model.")) continue;
    problem.key = cat(path, ": ", problem.key);
    broken.push_back(std::move(problem));
  }
  return broken;
}

// Refuses a model with more layers than the files have tensors. Every layer has tensors, so a config.json that claims
// 2^30 layers fails early.
std::vector<HfTensor> tensors_of(const ModelSpec& model, const TensorFiles& files, const std::string& folder) {
  const size_t most = files.tensors().size();
  if (static_cast<size_t>(model.layers) <= most) return hf_tensors(model);
  throw ConfigError({{cat(folder, "/config.json: model.layers"), cat(model.layers),
                      cat("must be at most ", most, ", the number of tensors in the files"), ""}});
}

ModelSpec model_in(const std::string& folder) {
  std::vector<Problem> problems;
  const std::string path = folder + "/config.json";
  const ModelSpec model = model::read_hf_config(path, problems);
  for (Problem& problem : problems) {
    if (problem.key == "model.config") problem = {path, "", "must be a model's configuration that can be read", ""};
  }
  if (model.experts > 0) problems.push_back({path, "", "must be of a dense model: experts are planned, not read", ""});
  if (problems.empty()) problems = broken_rules(model, path);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return model;
}

std::string drawn_shape(const mesh::Index& shape) {
  std::vector<std::string> extents;
  for (const int64_t extent : shape) extents.push_back(cat(extent));
  return cat("[", joined(extents), "]");
}

bool is_real(ckpt::ElementType type) {
  return type == ckpt::ElementType::F16 || type == ckpt::ElementType::BF16 || type == ckpt::ElementType::F32 ||
         type == ckpt::ElementType::F64;
}

void require_real(const ckpt::TensorInfo& info, std::vector<Problem>& problems) {
  if (!is_real(info.type)) problems.push_back({info.name, ckpt::text(info.type), "must be F16, BF16, F32 or F64", ""});
}

// Returns true if the values are equal. Types may differ.
bool same_values(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() ? a.equal(b) : a.to(at::kDouble).equal(b.to(at::kDouble));
}

}  // namespace

bool is_hf_directory(const std::string& folder) {
  return path_kind(folder + "/config.json") != PathKind::Nothing && has_hf_weights(folder) &&
         path_kind(folder + "/manifest.json") == PathKind::Nothing;
}

HfDirectory::HfDirectory(std::string folder)
    : folder_(std::move(folder)),
      model_(model_in(folder_)),
      files_(folder_),
      tensors_(tensors_of(model_, files_, folder_)) {
  for (const HfTensor& each : hf_carried(model_)) {
    if (files_.tensors().contains(each.name)) tensors_.push_back(each);
  }
  for (const HfTensor& each : tensors_) of_whole_[each.whole].push_back(&each);
  find_tensors();
}

// Returns the name itself, or another one under which the files have the tensor: the second name of an untied tensor,
// by which transformers reads it, or the name of older files.
std::string HfDirectory::name_in_files(const std::string& name) const {
  for (const model::HfAlias& copy : model::family_of(model_).names.copies) {
    const bool is_untied = model_.output_weights == OutputWeights::Untied && copy.other == name;
    if (is_untied && files_.tensors().contains(copy.name)) return copy.name;
  }
  for (const model::HfAlias& end : model::family_of(model_).names.older) {
    if (!name.ends_with(end.name)) continue;
    const std::string older = name.substr(0, name.size() - end.name.size()) + end.other;
    if (!files_.tensors().contains(name) && files_.tensors().contains(older)) return older;
  }
  return name;
}

// Finds each tensor in the files. The files of a base model leave the prefix out.
void HfDirectory::find_tensors() {
  const auto& found = files_.tensors();
  const std::string prefix = hf_base_prefix(model_);
  const auto has_prefix = [&](const auto& each) { return each.first.starts_with(prefix); };
  if (std::none_of(found.begin(), found.end(), has_prefix)) left_out_ = prefix;
  std::vector<Problem> problems;
  std::set<std::string> wanted;
  for (HfTensor& tensor : tensors_) {
    if (tensor.name.starts_with(left_out_)) tensor.name = tensor.name.substr(left_out_.size());
    const auto at = found.find(tensor.name = name_in_files(tensor.name));
    wanted.insert(tensor.name);
    if (at == found.end()) {
      problems.push_back({tensor.name, "", cat("is not in ", folder_), ""});
    } else if (at->second.shape != tensor.shape) {
      problems.push_back({tensor.name, drawn_shape(at->second.shape),
                          cat("must have the shape ", drawn_shape(tensor.shape), " that config.json asks for"), ""});
    } else {
      require_real(at->second, problems);
    }
  }
  for (const auto& [name, info] : found) {
    if (wanted.contains(name) || is_redundant(model_, name)) continue;
    problems.push_back({name, drawn_shape(info.shape), "is no tensor of the model that config.json describes", ""});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

std::vector<Problem> HfDirectory::problems_of_tied_head() const {
  const model::HfNames& names = model::family_of(model_).names;
  if (model_.output_weights == OutputWeights::Untied) return {};
  std::vector<Problem> problems = problems_of_copy(names.head, *of_whole_.at("wte.weight")[0]);
  for (const model::HfAlias& copy : names.copies) {
    const auto of = std::ranges::find(tensors_, copy.other, &HfTensor::name);
    for (Problem& problem : problems_of_copy(copy.name, *of)) problems.push_back(std::move(problem));
  }
  return problems;
}

std::vector<Problem> HfDirectory::problems_of_copy(const std::string& copy, const HfTensor& of) const {
  const auto found = files_.tensors().find(copy);
  if (found == files_.tensors().end()) return {};
  std::vector<Problem> problems;
  require_real(found->second, problems);
  if (!problems.empty()) return problems;
  bool same = found->second.shape == of.shape;
  const int64_t rows = of.shape[0], width = of.shape.size() > 1 ? of.shape[1] : 1;
  const int64_t most = std::max<int64_t>(1, kMostElements / width);
  for (int64_t row = 0; same && row < rows; row += most) {
    const int64_t end = std::min(rows, row + most);
    same = same_values(files_.rows(copy, row, end), files_.rows(of.name, row, end));
  }
  if (same) return {};
  return {{copy, "", cat("must be equal to ", of.name, ", to which config.json ties it (tie_word_embeddings)"), ""}};
}

bool HfDirectory::is_wide() const {
  return std::any_of(tensors_.begin(), tensors_.end(), [&](const HfTensor& each) {
    return files_.tensors().at(each.name).type == ckpt::ElementType::F64;
  });
}

void HfDirectory::read(const ckpt::PlacedTensor& tensor) const {
  const auto parts = of_whole_.find(tensor.name);
  check(parts != of_whole_.end(), "a tensor of the model is read");
  check(parts->second[0]->whole_shape == tensor.placement.global_shape, "a placement of the directory's model");
  for (const mesh::Piece& piece : tensor.placement.pieces) {
    for (const HfTensor* part : parts->second) read_box(*part, piece, tensor.local);
  }
}

// Reads rows of the file. They are rows of braid's tensor, or its columns if the file holds the transpose.
void HfDirectory::read_box(const HfTensor& part, const mesh::Piece& piece, const at::Tensor& local) const {
  const mesh::Box& box = piece.global;
  const int64_t begin = std::max(box.begin[0], part.first_row);
  const int64_t end = std::min(box.end[0], part.first_row + part.num_rows);
  if (begin >= end || box.empty()) return;
  at::Tensor to = ckpt::part_of(local, piece).narrow(0, begin - box.begin[0], end - begin);
  int64_t row = begin - part.first_row, last = end - part.first_row, column = 0, columns = 1;
  if (box.begin.size() == 2) column = box.begin[1], columns = box.end[1] - box.begin[1];
  if (part.orientation == Orientation::Transposed) {
    to = to.t();
    std::swap(row, column);
    columns = last - column;
    last = row + to.size(0);
  }
  const int64_t width = part.shape.size() == 2 ? part.shape[1] : 1, most = std::max<int64_t>(1, kMostElements / width);
  for (int64_t at = row; at < last; at += most) {
    const int64_t rows = std::min(most, last - at);
    at::Tensor read = files_.rows(part.name, at, at + rows);
    if (read.dim() == 2) read = read.narrow(1, column, columns);
    to.narrow(0, at - row, rows).copy_(read);
  }
}

}  // namespace braid::weights
