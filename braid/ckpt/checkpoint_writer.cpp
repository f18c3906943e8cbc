// The steps of the protocol that writes and publishes a checkpoint.
#include "braid/ckpt/checkpoint_writer.h"

#include <unistd.h>

#include <filesystem>
#include <random>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/shard_writer.h"

namespace braid::ckpt {
namespace {

std::string trimmed(const std::string& directory) {
  const std::string temporary = temporary_name(directory);
  return temporary.substr(0, temporary.size() - 4);
}

std::string name_of_a_save(const std::string& directory) {
  return cat(temporary_name(directory), ".", ::getpid(), "-", hex(std::random_device()()).substr(8));
}

}  // namespace

CheckpointWriter::CheckpointWriter(const std::string& directory, int64_t bytes, FileSystem& files)
    : directory_(trimmed(directory)), temporary_(name_of_a_save(directory)), files_(files) {
  const std::string parent = parent_folder(directory_);
  if (!files_.exists(parent)) {
    throw IoError(parent, -1, cat("is gone: there is no folder to save ", directory_, " in"));
  }
  recover();
  if (const std::string fault = why_not_replaceable(directory_); !fault.empty()) throw IoError(directory_, -1, fault);
  const int64_t free = files_.free_bytes(parent);
  if (free < bytes) {
    throw IoError(parent, -1,
                  cat("has ", counted(free, "byte"), " free; ", directory_, " needs ", bytes, ": nothing is written"));
  }
  try {
    files_.create_directories(temporary_);
  } catch (...) {
    undo();
    throw;
  }
}

CheckpointWriter::~CheckpointWriter() {
  if (!published_) undo();
}

// Removes leftovers. If a save was stopped between its two renames, the old checkpoint set aside is the valid one and
// gets its name back.
void CheckpointWriter::recover() {
  for (const std::string& path : leftovers(directory_)) files_.remove_all(path);
  const std::string aside = aside_name(directory_);
  if (!files_.exists(aside)) return;
  if (files_.exists(directory_)) {
    files_.remove_all(aside);
  } else {
    files_.rename(aside, directory_);
  }
}

void CheckpointWriter::publish(Manifest manifest, const std::map<std::string, std::string>& tokenizer_files) {
  for (const auto& [name, content] : tokenizer_files) {
    manifest.files[name] = write_plain(temporary_ + "/" + name, content, files_);
  }
  write_plain(temporary_ + "/manifest.json", manifest_text(manifest), files_);
  files_.sync_directory(temporary_);
  replace();
  published_ = true;
  if (!aside_) return;
  try {
    files_.remove_all(aside_name(directory_));
  } catch (const IoError&) {
    // The new checkpoint is published and durable. The next save removes the rest of the old one.
  }
}

void CheckpointWriter::replace() {
  if (files_.exists(directory_)) {
    files_.rename(directory_, aside_name(directory_));
    aside_ = true;
  }
  files_.rename(temporary_, directory_);
  renamed_ = true;
  files_.sync_directory(parent_folder(directory_));
}

// Ignores failures: the next save removes leftovers.
void CheckpointWriter::undo() noexcept {
  try {
    if (renamed_) files_.rename(directory_, temporary_);
    if (aside_) files_.rename(aside_name(directory_), directory_);
    files_.remove_all(temporary_);
  } catch (...) {
  }
}

std::string why_not_replaceable(const std::string& directory) {
  const PathKind kind = path_kind(directory);
  const bool is_ours = kind == PathKind::Nothing ||
                       (kind == PathKind::Folder &&
                        (names_in(directory).empty() || path_kind(directory + "/manifest.json") != PathKind::Nothing));
  return is_ours ? "" : "is no checkpoint, and a checkpoint is to be saved there: move it away";
}

std::vector<std::string> leftovers(const std::string& directory) {
  const std::filesystem::path place = trimmed(directory);
  std::vector<std::string> found;
  for (const std::string& entry : names_in(parent_folder(place))) {
    if (is_temporary_name(entry, place.filename())) found.push_back(place.parent_path() / entry);
  }
  return found;
}

}  // namespace braid::ckpt
