// The conversion of a checkpoint to a Hugging Face directory. It reads the rows of one tensor at a time, transposes
// them if Hugging Face does, rounds them and writes them.
#include "braid/weights/to_hf.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/json_text.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/model/hf_config_text.h"
#include "braid/tokenize/tokenizer.h"
#include "braid/tokenize/tokenizer_identity.h"
#include "braid/weights/from_hf.h"
#include "braid/weights/hf_directory.h"
#include "braid/weights/hf_tensors.h"

namespace braid::weights {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string without_last_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Returns rows of one of braid's tensors, in Hugging Face's orientation and the type to write.
at::Tensor read_tensor(const ToHf& request, const HfTensor& tensor) {
  mesh::Placement rows{tensor.whole_shape, tensor.whole_shape, {}, {}};
  rows.local_shape[0] = tensor.num_rows;
  mesh::Box box{mesh::Index(tensor.whole_shape.size(), 0), tensor.whole_shape};
  box.begin[0] = tensor.first_row;
  box.end[0] = tensor.first_row + tensor.num_rows;
  rows.pieces = {{box, mesh::Index(tensor.whole_shape.size(), 0)}};
  const auto saved = ckpt::read_manifest(request.checkpoint).tensors;
  const auto found = saved.find(tensor.whole);
  const at::ScalarType type = found == saved.end() ? request.written : ckpt::scalar_type(found->second.type);
  at::Tensor local = at::empty(rows.local_shape, type);
  ckpt::load_checkpoint(request.checkpoint, {{tensor.whole, rows, local}});
  if (tensor.orientation == Orientation::Transposed) local = local.t();
  return local.to(request.written).contiguous();
}

// A directory under a temporary name that gets its own name when it is complete.
class NewDirectory {
 public:
  NewDirectory(const std::string& path, FileSystem& files)
      : path_(without_last_slash(path)), temporary_(path_ + ".tmp"), files_(files) {
    files_.remove_all(temporary_);
    files_.create_directories(temporary_);
  }
  ~NewDirectory() {
    if (published_) return;
    try {
      files_.remove_all(temporary_);
    } catch (const IoError&) {  // NOLINT: leftovers have a name that ends in .tmp
    }
  }
  NewDirectory(const NewDirectory&) = delete;

  std::unique_ptr<WritableFile> create(const std::string& name) { return files_.create(temporary_ + "/" + name); }
  void add(const std::string& name, std::string_view content) {
    const auto file = create(name);
    file->append(std::as_bytes(std::span(content)));
    file->sync();
    file->close();
  }
  void publish() {
    files_.sync_directory(temporary_);
    files_.replace(temporary_, path_);  // may replace an empty folder; fails for any other
    published_ = true;
    const std::string parent = std::filesystem::path(path_).parent_path();
    files_.sync_directory(parent.empty() ? "." : parent);
  }

 private:
  std::string path_, temporary_;
  FileSystem& files_;
  bool published_ = false;
};

int64_t bytes_of(const ToHf& request, const HfTensor& tensor) {
  return mesh::num_elements(tensor.shape) * ckpt::bytes_per_element(ckpt::element_type(request.written));
}

// Returns the tensors that the model has no op for and the checkpoint has.
std::vector<HfTensor> carried_by(const ToHf& request) {
  std::vector<HfTensor> carried = hf_carried(request.model);
  if (carried.empty()) return carried;
  const ckpt::Manifest manifest = ckpt::read_manifest(request.checkpoint);
  std::erase_if(carried, [&](const HfTensor& each) { return !manifest.tensors.contains(each.whole); });
  return carried;
}

// Returns the tensors of each file, in the model's order.
std::vector<std::vector<HfTensor>> cut_into_files(const ToHf& request) {
  std::vector<std::vector<HfTensor>> cut(1);
  int64_t bytes = 0;
  std::vector<HfTensor> all = hf_tensors(request.model);
  std::ranges::move(hf_copies(request.model), std::back_inserter(all));
  std::ranges::move(carried_by(request), std::back_inserter(all));
  for (const HfTensor& tensor : all) {
    const int64_t more = bytes_of(request, tensor);
    const bool full = request.most_file_bytes > 0 && bytes > 0 && bytes + more > request.most_file_bytes;
    if (full) cut.emplace_back(), bytes = 0;
    cut.back().push_back(tensor);
    bytes += more;
  }
  return cut;
}

void write_file_of(const ToHf& request, const std::vector<HfTensor>& tensors, WritableFile& file) {
  std::vector<ckpt::TensorInfo> infos;
  std::map<std::string, const HfTensor*> by_name;
  for (const HfTensor& tensor : tensors) {
    infos.push_back({tensor.name, ckpt::element_type(request.written), tensor.shape});
    by_name[tensor.name] = &tensor;
  }
  const std::vector<ckpt::TensorEntry> places = ckpt::laid_out(std::move(infos));
  const std::string header = ckpt::header_bytes(places, {{"format", "pt"}});
  file.append(std::as_bytes(std::span(header)));
  for (const ckpt::TensorEntry& place : places) {
    const at::Tensor read = read_tensor(request, *by_name.at(place.info.name));
    file.append(braid::ckpt::bytes_of(read));
  }
  file.sync();
  file.close();
}

// Returns the number of files.
size_t write_weights(const ToHf& request, NewDirectory& directory) {
  const auto cut = cut_into_files(request);
  OrderedJson index;
  int64_t bytes = 0;
  for (size_t i = 0; i < cut.size(); ++i) {
    const std::string name = ckpt::safetensors_name("model", i + 1, cut.size());
    write_file_of(request, cut[i], *directory.create(name));
    for (const HfTensor& tensor : cut[i]) {
      index["weight_map"][tensor.name] = name;
      bytes += bytes_of(request, tensor);
    }
  }
  index["metadata"] = {{"total_size", bytes}};
  if (cut.size() > 1) directory.add(kHfIndex, index.dump(2) + "\n");
  return cut.size();
}

// Returns the type's name in config.json.
std::string type_name(at::ScalarType type) {
  if (type == at::kDouble) return "float64";
  return type == at::kBFloat16 ? "bfloat16" : "float32";
}

std::string content_of(const std::string& folder, const std::string& name) {
  const std::string path = cat(folder, "/", name);
  return path_kind(path) == PathKind::File ? CheckedFile(path).content(tokenize::kMaxTokenizerBytes) : "";
}

// Returns the tokenizer; null if braid cannot read it.
std::unique_ptr<tokenize::Tokenizer> tokenizer_in(const std::string& folder) {
  try {
    return tokenize::make_tokenizer(folder);
  } catch (const ConfigError&) {
    return nullptr;
  }
}

// Returns the ids of the tokens that transformers must know by their use, with its keys; none without a tokenizer.
std::vector<std::pair<const char*, int64_t>> named_tokens(const tokenize::Tokenizer* tokenizer) {
  if (!tokenizer) return {};
  std::vector<std::pair<const char*, int64_t>> named{{"eos_token", tokenizer->end_of_text()}};
  if (const auto masks = tokenizer->mask_tokens()) {
    named.insert(named.end(), {{"mask_token", masks->mask},
                               {"cls_token", masks->begin},
                               {"sep_token", masks->end},
                               {"pad_token", masks->padding}});
  }
  return named;
}

// Returns a tokenizer_config.json, which transformers needs to read tokenizer.json.
std::string tokenizer_config_text(const std::string& tokenizer_json, const tokenize::Tokenizer* tokenizer) {
  OrderedJson config{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  nlohmann::json json;
  if (read_json(tokenizer_json, json).line > 0) json = nullptr;
  const auto added = json.is_object() ? json.value("added_tokens", nlohmann::json::array()) : nlohmann::json::array();
  for (const auto& [key, id] : named_tokens(tokenizer)) {
    for (const auto& token : added) {
      if (token.is_object() && token.value("id", -1) == id) config[key] = token.value("content", "");
    }
  }
  return config.dump(2) + "\n";
}

struct WrittenTokenizer {
  std::optional<int> end_of_text;
  std::string sentence;
};

WrittenTokenizer write_tokenizer(const ToHf& request, NewDirectory& directory) {
  const std::string folder = ckpt::tokenizer_folder(request.checkpoint);
  if (folder.empty()) return {{}, "no tokenizer: the checkpoint has none, or \"bytes\""};
  std::set<std::string> written;
  for (const std::string& name : carried_files()) {
    const std::string content = content_of(folder, name);
    if (content.empty()) continue;
    directory.add(name, content);
    written.insert(name);
  }
  const auto tokenizer = tokenizer_in(folder);
  if (written.contains("tokenizer.json") && !written.contains("tokenizer_config.json")) {
    directory.add("tokenizer_config.json",
                  tokenizer_config_text(content_of(folder, "tokenizer.json"), tokenizer.get()));
  }
  const auto end = tokenizer ? std::optional(tokenizer->end_of_text()) : std::nullopt;
  return {end, cat("the tokenizer: ", joined({written.begin(), written.end()}))};
}

}  // namespace

std::vector<std::string> hf_from_checkpoint(const ToHf& request, FileSystem& files) {
  require_empty_place("DIR", request.directory);
  std::vector<Problem> problems;
  model::hf_config_text(request.model, {}, problems);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  const std::string type = type_name(request.written);
  NewDirectory directory(request.directory, files);
  const WrittenTokenizer tokenizer = write_tokenizer(request, directory);
  directory.add(
      "config.json",
      model::hf_config_text(request.model, {type, tokenizer.end_of_text, !carried_by(request).empty()}, problems));
  const size_t num_files = write_weights(request, directory);
  directory.publish();
  return {cat("weights in ", type, ", ", counted(num_files, "file")), tokenizer.sentence};
}

}  // namespace braid::weights
