// Rank 0 writes while the others send; before each tensor all agree that rank 0 has not failed.
#include "braid/ckpt/save.h"

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint_writer.h"
#include "braid/ckpt/exchange.h"
#include "braid/ckpt/gather.h"

namespace braid {
namespace {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";

// What rank 0 does alone, and how the others learn that it failed.
class FirstRankWriter {
 public:
  FirstRankWriter(Communicator& world, at::Device device) : world_(world), device_(device) {}

  // On rank 0, unless something failed before: runs `step`. When it throws IoError, keeps that and takes back what was
  // written, before any other rank can know.
  void run(const std::function<void(std::optional<CheckpointWriter>& writer)>& step) {
    if (world_.rank() != 0 || !failure_.empty()) return;
    try {
      step(writer_);
    } catch (const IoError& error) {
      const std::string before = IoError(error.path(), -1, "").what();  // what() is that, and why
      const std::string why = std::string(error.what()).substr(before.size());
      failure_ = nlohmann::json({error.path(), why}).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      writer_.reset();
    }
  }

  // Collective: throws the same IoError on every rank when rank 0 has failed.
  void agree() const {
    const std::string failure = text_of_rank_0(failure_, device_, world_);
    if (failure.empty()) return;
    const auto json = nlohmann::json::parse(failure);
    throw IoError(json[0], -1, json[1]);
  }

 private:
  Communicator& world_;
  at::Device device_;
  std::optional<CheckpointWriter> writer_;
  std::string failure_;
};

// The tensors of each file, in the order of their bytes.
std::map<std::string, std::vector<TensorEntry>> by_file(const std::vector<GatheredTensor>& tensors) {
  std::map<std::string, std::vector<TensorInfo>> infos;
  infos[kModelFile];
  for (const auto& tensor : tensors) {
    const std::string& name = tensor.info.name;
    infos[name.find('/') == name.npos ? kModelFile : kOptimizerFile].push_back(tensor.info);
  }
  std::map<std::string, std::vector<TensorEntry>> entries;
  for (auto& [file, list] : infos) entries[file] = laid_out(std::move(list));
  return entries;
}

}  // namespace

void save_checkpoint_to(const std::string& directory, const CheckpointContent& content, Communicator& world,
                        FileSystem& files) {
  const Gather gather(content.tensors, world);
  std::map<std::string, const GatheredTensor*> gathered;
  for (const auto& tensor : gather.tensors()) gathered[tensor.info.name] = &tensor;

  FirstRankWriter first_rank(world, content.tensors.empty() ? at::Device(at::kCPU) : content.tensors[0].local.device());
  first_rank.run([&](auto& writer) {
    writer.emplace(directory, content.info, files);
    if (!content.tokenizer_files) return;
    for (const auto& [name, bytes] : *content.tokenizer_files) writer->add(name, bytes);
  });
  for (const auto& [file, entries] : by_file(gather.tensors())) {
    first_rank.run([&, &file = file, &entries = entries](auto& writer) { writer->open(file, entries); });
    for (const auto& entry : entries) {
      first_rank.agree();
      const auto whole = gather(*gathered.at(entry.info.name));
      first_rank.run([&](auto& writer) { writer->append(whole); });
    }
    first_rank.run([](auto& writer) { writer->close(); });
  }
  first_rank.run([](auto& writer) { writer->publish(); });
  first_rank.agree();
}

void save_checkpoint(const std::string& directory, const CheckpointContent& content, Communicator& world) {
  PosixFileSystem files;
  save_checkpoint_to(directory, content, world, files);
}

}  // namespace braid
