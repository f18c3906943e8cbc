// Reads and writes weight files. All ranks know the order of tensors in the file, so rank 0 need not request them.
#include "braid/module/weights_file.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <span>

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/base/file_system.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint_files.h"
#include "braid/ckpt/exchange.h"
#include "braid/ckpt/safetensors.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/comm/agree.h"

namespace braid::modules {
namespace {

constexpr int kWeightsTag = 0x7766;

ckpt::TensorInfo info_of(const NamedTensor& named) {
  return {named.name,
          ckpt::element_type(named.tensor.scalar_type()),
          {named.tensor.sizes().begin(), named.tensor.sizes().end()}};
}

// The tensors of all ranks in the order of the file, and the lowest rank that has each.
struct Contents {
  std::vector<ckpt::TensorEntry> entries;
  std::map<std::string, int> owners;
};

Contents contents_of_all(const std::vector<NamedTensor>& own, Communicator& world) {
  std::vector<ckpt::ListedTensor> listing;
  for (const NamedTensor& named : own) listing.push_back({info_of(named), {}});
  const auto listings = comm::gather_texts(world, "weights of a file", ckpt::packed(listing));
  Contents contents;
  std::vector<ckpt::TensorInfo> infos;
  for (int rank = 0; rank < world.size(); ++rank) {
    for (ckpt::ListedTensor& item : ckpt::unpacked_listing(listings[static_cast<size_t>(rank)])) {
      if (contents.owners.try_emplace(item.info.name, rank).second) infos.push_back(std::move(item.info));
    }
  }
  contents.entries = ckpt::laid_out(std::move(infos));
  return contents;
}

// Sends a tensor from `owner` to rank 0. Returns its values on these two ranks, and an undefined tensor on others.
at::Tensor brought(const ckpt::TensorEntry& entry, int owner, const at::Tensor& mine, Communicator& world) {
  at::Tensor values;
  if (world.rank() == owner) values = mine.detach().cpu().contiguous();
  if (owner == 0) return values;
  if (world.rank() == 0) values = at::empty(entry.info.shape, at::TensorOptions(ckpt::scalar_type(entry.info.type)));
  if (!values.defined() || values.numel() == 0) return values;
  const bool sends = world.rank() == owner;
  const P2p transfer{sends ? P2p::Kind::Send : P2p::Kind::Recv, values, sends ? 0 : owner, kWeightsTag};
  world.batch({&transfer, 1}).wait_host();
  return values;
}

// A new file under a temporary name in the same folder; publish() gives it its final name.
class NewFile {
 public:
  explicit NewFile(const std::string& path)
      : path_(path), temporary_(cat(path, ".tmp.", ::getpid())), file_(files_.create(temporary_)) {}
  ~NewFile() {
    if (file_) ::unlink(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;

  void append(std::span<const std::byte> bytes) { file_->append(bytes); }
  void publish() {
    file_->sync();
    file_->close();
    files_.replace(temporary_, path_);
    file_.reset();
    files_.sync_directory(parent_folder(path_));
  }

 private:
  PosixFileSystem files_;
  const std::string path_, temporary_;
  std::unique_ptr<WritableFile> file_;
};

// Rank 0's file. An error is kept until end(), because the other ranks send all their tensors in any case.
class WeightsWriter {
 public:
  explicit WeightsWriter(const std::string& path) : path_(path) {}

  void begin(const std::vector<ckpt::TensorEntry>& entries) {
    attempt([&] {
      file_.emplace(path_);
      const std::string header = ckpt::header_bytes(entries, {{"format", "pt"}});
      file_->append(std::as_bytes(std::span(header)));
    });
  }
  void append(const at::Tensor& values) {
    attempt([&] { file_->append(ckpt::bytes_of(values)); });
  }
  void end() {
    attempt([&] { file_->publish(); });
    if (fault_) throw IoError(path_, -1, *fault_);
  }

 private:
  void attempt(const std::function<void()>& step) {
    if (fault_) return;
    try {
      step();
    } catch (const IoError& error) {
      fault_ = error.why();
      file_.reset();
    }
  }

  const std::string path_;
  std::optional<NewFile> file_;
  std::optional<std::string> fault_;
};

}  // namespace

void write_weights(const std::string& path, const ModelPart& part) {
  ckpt::all_or_none([&] { require_stored(part); }, part.world);
  const std::vector<NamedTensor> own = named_weights(part);
  std::map<std::string, at::Tensor> by_name;
  for (const NamedTensor& named : own) by_name[named.name] = named.tensor;
  const Contents contents = contents_of_all(own, part.world);
  const bool writes = part.world.rank() == 0;
  WeightsWriter writer(path);
  if (writes) writer.begin(contents.entries);
  for (const ckpt::TensorEntry& entry : contents.entries) {
    const std::string& name = entry.info.name;
    const at::Tensor values = brought(entry, contents.owners.at(name), by_name[name], part.world);
    if (writes) writer.append(values);
  }
  ckpt::all_or_none(
      [&] {
        if (writes) writer.end();
      },
      part.world);
}

namespace {

// Returns the file's values of this rank's tensors, in the order of `own`.
Tensors values_in(const std::string& path, const std::vector<NamedTensor>& own, const std::set<std::string>& known) {
  const CheckedFile file(path, Links::Followed);
  const ckpt::SafetensorsHeader header = ckpt::read_header(file);
  std::map<std::string, const ckpt::TensorEntry*> entries;
  std::vector<Problem> problems;
  for (const ckpt::TensorEntry& entry : header.tensors) {
    entries[entry.info.name] = &entry;
    if (!known.contains(entry.info.name))
      problems.push_back({entry.info.name, "", cat("is in ", path, " and not in the model"), ""});
  }
  for (const NamedTensor& named : own) {
    const auto found = entries.find(named.name);
    if (found == entries.end()) {
      problems.push_back({named.name, "", cat("is not in ", path), ""});
    } else if (const ckpt::TensorInfo& in = found->second->info, needed = info_of(named); in != needed) {
      problems.push_back({named.name, ckpt::drawn(in.type, in.shape),
                          cat("in ", path, "; the model has ", ckpt::drawn(needed.type, needed.shape)), ""});
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  Tensors all;
  for (const NamedTensor& named : own) {
    const ckpt::TensorEntry& entry = *entries.at(named.name);
    all.push_back(at::empty(entry.info.shape, at::TensorOptions(ckpt::scalar_type(entry.info.type))));
    file.read(header.data_begin + entry.begin, ckpt::bytes_of(all.back()));
  }
  return all;
}

}  // namespace

void read_weights(const std::string& path, const ModelPart& part) {
  const c10::AutoGradMode no_grad(false);
  const std::vector<NamedTensor> own = named_weights(part);
  Tensors values;
  const auto read = [&] {
    require_stored(part);
    values = values_in(path, own, names_of_weights(part));
  };
  ckpt::all_or_none(read, part.world);
  for (size_t i = 0; i < own.size(); ++i) own[i].tensor.set_data(values[i].to(own[i].tensor.device()));
}

}  // namespace braid::modules
