// The protocol, step by step.
#include "braid/ckpt/checkpoint_writer.h"

#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid {
namespace {

std::string parent(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string trimmed(const std::string& directory) {
  const std::string temporary = temporary_name(directory);
  return temporary.substr(0, temporary.size() - 4);
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string directory, CheckpointInfo info, FileSystem& files)
    : directory_(trimmed(directory)), files_(files) {
  manifest_.info = std::move(info);
  if (!files_.exists(parent(directory_)))
    throw IoError(parent(directory_), -1, cat("is gone: there is no folder to save ", directory_, " in"));
  recover();
  files_.create_directories(temporary_name(directory_));
}

CheckpointWriter::~CheckpointWriter() {
  if (!published_) undo();
}

// A save that was stopped between its two renames has left the old checkpoint aside: it is the one that counts.
void CheckpointWriter::recover() {
  files_.remove_all(temporary_name(directory_));
  const std::string aside = aside_name(directory_);
  if (!files_.exists(aside)) return;
  if (files_.exists(directory_)) {
    files_.remove_all(aside);
  } else {
    files_.rename(aside, directory_);
  }
}

void CheckpointWriter::add(const std::string& name, std::string_view content) {
  begin(name, {});
  write(std::as_bytes(std::span(content)));
  close();
}

void CheckpointWriter::open(const std::string& name, std::vector<TensorEntry> tensors) {
  begin(name, std::move(tensors));
  const std::string header = header_bytes(tensors_, {{"format", "braid"}});
  write(std::as_bytes(std::span(header)));
}

void CheckpointWriter::begin(const std::string& name, std::vector<TensorEntry> tensors) {
  check(!file_, "one file of a checkpoint is written at a time");
  name_ = name;
  tensors_ = std::move(tensors);
  next_ = 0;
  digest_ = Digest(DigestKind::Xxh3);
  bytes_ = 0;
  file_ = files_.create(temporary_name(directory_) + "/" + name);
}

void CheckpointWriter::write(std::span<const std::byte> bytes) {
  digest_.add(bytes);
  bytes_ += static_cast<int64_t>(bytes.size());
  file_->append(bytes);
}

void CheckpointWriter::append(const at::Tensor& tensor) {
  check(file_ && next_ < tensors_.size(), "a file takes the tensors it was opened with");
  const TensorInfo& info = tensors_[next_++].info;
  check(tensor.sizes().equals(info.shape) && element_type(tensor.scalar_type()) == info.type,
        "a file takes its tensors in order");
  const auto bytes = bytes_of(tensor);
  write(bytes);
  const NamedDigest own{digest_of(DigestKind::Xxh3, bytes), DigestKind::Xxh3};
  manifest_.tensors[info.name] = {name_, info.type, info.shape, own};
}

void CheckpointWriter::close() {
  check(next_ == tensors_.size(), "a file is closed when all its tensors are written");
  file_->sync();
  file_->close();
  file_.reset();
  manifest_.files[name_] = {bytes_, digest_.named()};
}

void CheckpointWriter::publish() {
  const std::string temporary = temporary_name(directory_);
  const std::string text = manifest_text(manifest_);
  file_ = files_.create(temporary + "/manifest.json");
  file_->append(std::as_bytes(std::span(text)));
  file_->sync();
  file_->close();
  file_.reset();
  files_.sync_directory(temporary);
  replace();
  published_ = true;
  if (!aside_) return;
  try {
    files_.remove_all(aside_name(directory_));
  } catch (const IoError&) {
    // The new checkpoint is there and durable; the next save removes what is left of the old one.
  }
}

void CheckpointWriter::replace() {
  if (files_.exists(directory_)) {
    files_.rename(directory_, aside_name(directory_));
    aside_ = true;
  }
  files_.rename(temporary_name(directory_), directory_);
  renamed_ = true;
  files_.sync_directory(parent(directory_));
}

// Nothing can be done about a failure here: what stays behind is cleared away by the next save.
void CheckpointWriter::undo() noexcept {
  file_.reset();
  try {
    if (renamed_) files_.rename(directory_, temporary_name(directory_));
    if (aside_) files_.rename(aside_name(directory_), directory_);
    files_.remove_all(temporary_name(directory_));
  } catch (...) {
  }
}

}  // namespace braid
