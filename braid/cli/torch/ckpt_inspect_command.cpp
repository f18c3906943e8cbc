// braid ckpt inspect: prints a checkpoint's manifest as text or JSON. The values of tensors are not read.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "braid/base/text.h"
#include "braid/ckpt/checkpoint_reader.h"
#include "braid/ckpt/manifest.h"
#include "braid/cli/arguments.h"
#include "braid/cli/torch/named_checkpoint.h"
#include "braid/train/resume.h"

namespace braid::cli {
namespace {

constexpr size_t kMostOfAName = 2'000;  // bytes that are shown

struct CheckpointSummary {
  int64_t parameters = 0;  // elements of all weights, without other tensors
  int64_t bytes = 0;       // size of all files
  size_t writers = 0;      // ranks that wrote weights or states
};

CheckpointSummary summary_of(const ckpt::Manifest& manifest) {
  CheckpointSummary summary;
  for (const auto& [name, tensor] : manifest.tensors) {
    if (ckpt::is_weight(name)) summary.parameters += mesh::num_elements(tensor.shape);
  }
  size_t models = 0, optimizers = 0;
  for (const auto& [name, file] : manifest.files) {
    summary.bytes += file.bytes;
    if (ckpt::holds_tensors(name)) ++(name.starts_with("model") ? models : optimizers);
  }
  summary.writers = std::max(models, optimizers);
  return summary;
}

// Returns "2 layers, 2 heads, width 16, context 64"; empty if the checkpoint has no configuration.
std::string model_text(const ckpt::CheckpointInfo& info, const std::string& directory) {
  if (info.config_toml.empty()) return "";
  const ModelSpec model = train::saved_spec(info, directory).model;
  return cat(counted(model.layers, "layer"), ", ", counted(model.heads, "head"), ", width ", model.width, ", context ",
             model.context);
}

nlohmann::ordered_json inspected_json(const ckpt::CheckpointReader& reader) {
  const ckpt::Manifest& manifest = reader.manifest();
  const CheckpointSummary summary = summary_of(manifest);
  nlohmann::ordered_json json{{"folder", reader.folder()},
                              {"version", manifest.version},
                              {"step", manifest.info.step},
                              {"next_sample", manifest.info.next_sample},
                              {"model", model_text(manifest.info, reader.folder())},
                              {"parameters", summary.parameters},
                              {"bytes", summary.bytes},
                              {"ranks", summary.writers},
                              {"tokenizer", manifest.info.tokenizer}};
  json["files"] = json["tensors"] = json["data"] = nlohmann::ordered_json::array();
  for (const auto& [name, file] : manifest.files) json["files"].push_back({{"name", name}, {"bytes", file.bytes}});
  for (const auto& [name, tensor] : manifest.tensors) {
    json["tensors"].push_back({{"name", name}, {"dtype", ckpt::text(tensor.type)}, {"shape", tensor.shape}});
    auto& boxes = json["tensors"].back()["boxes"] = nlohmann::ordered_json::array();
    for (const auto& [file, box, hash] : tensor.boxes) {
      boxes.push_back({{"file", file}, {"begin", box.begin}, {"end", box.end}});
    }
  }
  for (const ContentMark& mark : manifest.info.data) {
    json["data"].push_back({{"name", mark.name}, {"documents", mark.documents}, {"bytes", mark.bytes}});
  }
  return json;
}

void print_tensor(const std::string& name, const ckpt::ManifestTensor& tensor) {
  std::set<std::string> files;
  for (const ckpt::ManifestBox& box : tensor.boxes) files.insert(box.file);
  std::cout << "tensor      " << printable(name, kMostOfAName) << "  " << ckpt::drawn(tensor.type, tensor.shape);
  if (tensor.boxes.size() > 1)
    std::cout << "  in " << tensor.boxes.size() << " boxes of " << counted(files.size(), "file");
  std::cout << "\n";
}

void print_inspected(const ckpt::CheckpointReader& reader) {
  const ckpt::Manifest& manifest = reader.manifest();
  const ckpt::CheckpointInfo& info = manifest.info;
  const CheckpointSummary summary = summary_of(manifest);
  const std::string model = model_text(info, reader.folder());
  std::cout << "checkpoint  " << printable(reader.folder(), kMostOfAName) << ", format " << manifest.version << "\n"
            << "step        " << info.step << ", next sample " << info.next_sample << "\n";
  if (!model.empty()) std::cout << "model       " << model << "\n";
  std::cout << "parameters  " << summary.parameters << "\n"
            << "bytes       " << summary.bytes << " (" << human_bytes(static_cast<double>(summary.bytes))
            << "), written by " << counted(summary.writers, "rank") << "\ntokenizer   "
            << printable(info.tokenizer, kMostOfAName) << "\n";
  for (const auto& [name, value] : info.counters) {
    std::cout << "counter     " << printable(name, kMostOfAName) << " " << exact(value) << "\n";
  }
  for (const ContentMark& mark : info.data) {
    std::cout << "data        " << printable(mark.name, kMostOfAName) << "  " << counted(mark.documents, "document")
              << ", " << human_bytes(static_cast<double>(mark.bytes)) << "\n";
  }
  for (const auto& [name, file] : manifest.files) {
    std::cout << "file        " << printable(name, kMostOfAName) << "  " << human_bytes(static_cast<double>(file.bytes))
              << "\n";
  }
  for (const auto& [name, tensor] : manifest.tensors) print_tensor(name, tensor);
}

}  // namespace

int ckpt_inspect_command(const Words& words) {
  CLI::App app("Prints what a checkpoint holds, by its manifest: its tensors, files, tokenizer and data.",
               "braid ckpt inspect");
  std::string path;
  bool as_json = false;
  app.add_option("CKPT", path, kCheckpointMeaning)->required();
  app.add_flag("--json", as_json, "as one JSON object");
  if (const auto code = parse_words(app, words)) return *code;

  const ckpt::CheckpointReader reader(named_checkpoint({"CKPT", path, path}, tell_passed_over));
  if (as_json) {
    const auto json = inspected_json(reader);
    std::cout << json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
  } else {
    print_inspected(reader);
  }
  return 0;
}

}  // namespace braid::cli
