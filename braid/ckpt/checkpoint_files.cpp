// Checks sizes and headers when a file is opened, and digests block by block on request.
#include "braid/ckpt/checkpoint_files.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "braid/base/digest.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::ckpt {
namespace {

// Reads that threads take by number from one counter. When a read fails, all reads with lower numbers have begun.
class Reads {
 public:
  Reads(int64_t count, const std::function<void(int64_t, int)>& read) : count_(count), read_(read) {}

  void take_all(int reader) {
    while (!failed_.load()) {
      const int64_t number = next_++;
      if (number >= count_) return;
      try {
        read_(number, reader);
      } catch (...) {
        fail(number);
      }
    }
  }
  void throw_lowest() const {
    if (fault_) std::rethrow_exception(fault_);
  }

 private:
  void fail(int64_t number) {
    const std::scoped_lock hold(lock_);
    failed_ = true;
    if (number > lowest_) return;
    lowest_ = number;
    fault_ = std::current_exception();
  }

  const int64_t count_;
  const std::function<void(int64_t, int)>& read_;
  std::atomic<int64_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex lock_;
  int64_t lowest_ = std::numeric_limits<int64_t>::max();
  std::exception_ptr fault_;
};

}  // namespace

void read_in_parallel(int64_t count, const std::function<void(int64_t, int)>& read) {
  Reads reads(count, read);
  {
    std::vector<std::jthread> helpers;
    const int readers = static_cast<int>(std::min<int64_t>(count, kReaders));
    try {
      for (int reader = 1; reader < readers; ++reader) helpers.emplace_back([&, reader] { reads.take_all(reader); });
    } catch (const std::system_error&) {  // no more threads: the ones that started read all
    }
    reads.take_all(0);
  }
  reads.throw_lowest();
}

namespace {

constexpr int64_t kReadBytes = 4 << 20;

void check_size(const CheckedFile& file, int64_t expected) {
  const int64_t bytes = file.bytes();
  if (bytes == expected) return;
  throw IoError(file.path(), std::min(bytes, expected),
                cat("has ", counted(bytes, "byte"), "; the manifest says ", expected));
}

// Returns the digest of the bytes [begin, end) of the file.
NamedDigest hashed(const CheckedFile& file, int64_t begin, int64_t end, DigestKind kind) {
  Digest digest(kind);
  const auto chunk =
      std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(std::min(kReadBytes, end - begin)));
  for (int64_t at = begin; at < end; at += kReadBytes) {
    const std::span<std::byte> part(chunk.get(), static_cast<size_t>(std::min(kReadBytes, end - at)));
    file.read(at, part);
    digest.add(part);
  }
  return digest.named();
}

bool is_as_listed(const CheckedFile& file, const ManifestFile& listed, int64_t block) {
  const int64_t begin = block * listed.block_bytes, end = std::min(listed.bytes, begin + listed.block_bytes);
  const NamedDigest& wanted = listed.blocks[static_cast<size_t>(block)];
  return hashed(file, begin, end, wanted.kind) == wanted;
}

std::set<int64_t> all_blocks(const ManifestFile& file) {
  std::set<int64_t> blocks;
  for (int64_t block = 0; block < std::ssize(file.blocks); ++block) blocks.insert(block);
  return blocks;
}

std::string where(const ManifestFile& listed, int64_t block) {
  if (listed.blocks.size() == 1) return "";
  return cat(" in block ", block, " (bytes ", block * listed.block_bytes, " to ",
             std::min(listed.bytes, (block + 1) * listed.block_bytes), ")");
}

}  // namespace

bool has_large_blocks(const ManifestFile& file) { return file.block_bytes > kBlockBytes; }

std::string drawn(ElementType type, const std::vector<int64_t>& shape) {
  std::vector<std::string> words;
  for (const int64_t extent : shape) words.push_back(cat(extent));
  return cat(text(type), " [", joined(words), "]");
}

CheckpointFiles::CheckpointFiles(std::string folder, const Manifest& manifest)
    : folder_(std::move(folder)), manifest_(manifest) {
  for (const auto& [name, tensor] : manifest.tensors) {
    for (const ManifestBox& box : tensor.boxes) {
      listed_[box.file][stored_name(name, tensor.shape, box.box)] = {&name, &box};
    }
  }
}

const StoredFile& CheckpointFiles::open(const std::string& name) {
  auto& known = opened_[name];
  if (known) return *known;
  auto stored = std::make_unique<StoredFile>(folder_ + "/" + name);
  check_size(stored->file, manifest_.files.at(name).bytes);
  stored->header = read_header(stored->file);
  for (const auto& entry : stored->header.tensors) stored->entries[entry.info.name] = entry;
  compare_header(name, *stored);
  known = std::move(stored);
  return *known;
}

void CheckpointFiles::compare_header(const std::string& name, const StoredFile& stored) const {
  const auto& path = stored.file.path();
  static const std::map<std::string, Listed> kNothing;
  const auto found = listed_.find(name);
  const auto& listed = found == listed_.end() ? kNothing : found->second;
  for (const auto& [tensor, entry] : stored.entries) {
    if (!listed.contains(tensor)) throw IoError(path, 8, cat("tensor ", tensor, " is not in the manifest"));
  }
  for (const auto& [tensor, place] : listed) {
    const auto entry = stored.entries.find(tensor);
    if (entry == stored.entries.end()) {
      throw IoError(path, 8, cat("has no tensor ", tensor, ", which the manifest lists"));
    }
    const TensorInfo& info = entry->second.info;
    const ElementType type = manifest_.tensors.at(*place.tensor).type;
    const mesh::Index shape = extents(place.box->box);
    if (info.type != type || info.shape != shape) {
      throw IoError(
          path, 8,
          cat("tensor ", tensor, " is ", drawn(info.type, info.shape), "; the manifest says ", drawn(type, shape)));
    }
  }
}

int64_t CheckpointFiles::begin_of(const std::string& tensor, const ManifestBox& box) {
  const StoredFile& stored = open(box.file);
  const mesh::Index& shape = manifest_.tensors.at(tensor).shape;
  return stored.header.data_begin + stored.entries.at(stored_name(tensor, shape, box.box)).begin;
}

std::span<std::byte> CheckpointFiles::memory_of(int reader) {
  AlignedBytes& memory = memory_[reader];
  if (!memory) memory = aligned_bytes(kBlockBytes);
  return {memory.get(), static_cast<size_t>(kBlockBytes)};
}

void CheckpointFiles::verify(const std::string& name, const std::set<int64_t>& blocks) {
  const ManifestFile& listed = manifest_.files.at(name);
  const CheckedFile& file = open(name).file;
  const std::vector<int64_t> all(blocks.begin(), blocks.end());
  read_in_parallel(std::ssize(all), [&](int64_t number, int) {
    const int64_t block = all[static_cast<size_t>(number)];
    if (!is_as_listed(file, listed, block)) throw_changed(name, block);
  });
}

void CheckpointFiles::compare(const std::string& name, int64_t block, std::span<const std::byte> bytes) {
  const NamedDigest& wanted = manifest_.files.at(name).blocks[static_cast<size_t>(block)];
  if (digest_of(wanted.kind, bytes) != wanted.value) throw_changed(name, block);
}

void CheckpointFiles::verify(const std::string& name) {
  const ManifestFile& listed = manifest_.files.at(name);
  if (holds_tensors(name)) return verify(name, all_blocks(listed));
  const CheckedFile file(folder_ + "/" + name);
  check_size(file, listed.bytes);
  for (const int64_t block : all_blocks(listed)) {
    if (!is_as_listed(file, listed, block))
      throw IoError(file.path(), block * listed.block_bytes, "was changed" + where(listed, block));
  }
}

// Throws IoError. It names the first tensor of the block whose bytes were changed, or else the header.
void CheckpointFiles::throw_changed(const std::string& name, int64_t block) {
  const ManifestFile& listed = manifest_.files.at(name);
  const StoredFile& stored = open(name);
  const auto& path = stored.file.path();
  const int64_t first = block * listed.block_bytes, last = first + listed.block_bytes;
  for (const auto& entry : stored.header.tensors) {
    const int64_t begin = stored.header.data_begin + entry.begin, end = stored.header.data_begin + entry.end;
    if (end <= first || begin >= last) continue;
    const NamedDigest& wanted = listed_.at(name).at(entry.info.name).box->hash;
    const NamedDigest found = hashed(stored.file, begin, end, wanted.kind);
    if (found == wanted) continue;
    throw IoError(path, std::max(begin, first),
                  cat("tensor ", entry.info.name, " has ", braid::text(found), "; the manifest says ",
                      hex(wanted.value), ": its bytes were changed", where(listed, block)));
  }
  throw IoError(path, first, cat("the digest is not the manifest's: its header was changed", where(listed, block)));
}

}  // namespace braid::ckpt
