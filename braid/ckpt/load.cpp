// Reading a checkpoint as a run does: everything is compared before anything is written.
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/checkpoint_reader.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid {
namespace {

constexpr size_t kMaxSuggestions = 8;  // looking for the nearest name costs a comparison with every name

std::vector<Problem> differences(const Manifest& manifest, const std::vector<PlacedTensor>& tensors) {
  std::vector<Problem> problems;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : manifest.tensors) names.push_back(name);
  for (const auto& [name, placement, local] : tensors) {
    const auto found = manifest.tensors.find(name);
    const ElementType type = element_type(local.scalar_type());
    if (found == manifest.tensors.end()) {
      const bool suggest = problems.size() < kMaxSuggestions;
      problems.push_back({name, "", "is not in the checkpoint", suggest ? nearest(name, names) : ""});
    } else if (found->second.shape != placement.global_shape || found->second.type != type) {
      problems.push_back({name, drawn(found->second.type, found->second.shape),
                          cat("in the checkpoint; this run needs ", drawn(type, placement.global_shape)), ""});
    }
  }
  return problems;
}

}  // namespace

CheckpointInfo read_checkpoint_info(const std::string& directory) {
  return read_manifest(found_directory(directory)).info;
}

std::string tokenizer_folder(const std::string& directory) {
  const std::string found = found_directory(directory);
  const Manifest manifest = read_manifest(found);
  CheckpointFiles files(found, manifest);
  bool any = false;
  for (const auto& [name, said] : manifest.files) {
    if (holds_tensors(name)) continue;
    files.verify(name);
    any = true;
  }
  return any ? found : "";
}

void load_checkpoint(const std::string& directory, const std::vector<PlacedTensor>& tensors) {
  CheckpointReader reader(directory);
  auto problems = differences(reader.manifest(), tensors);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  reader.verify(tensors);
  reader.fill(tensors);
}

void verify_checkpoint(const std::string& directory) { CheckpointReader(directory).verify(); }

}  // namespace braid
