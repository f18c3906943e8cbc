// A save whose rows are read from another checkpoint.
#include "braid/ckpt/rewrite.h"

#include "braid/base/checked_file.h"
#include "braid/base/errors.h"
#include "braid/ckpt/checkpoint_reader.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/save.h"

namespace braid::ckpt {
namespace {

constexpr int64_t kMaxTokenizerBytes = 1'000'000'000;

std::vector<ListedTensor> listed_in(const Manifest& manifest, RewriteRequest::Tensors which) {
  std::vector<ListedTensor> listing;
  for (const auto& [name, tensor] : manifest.tensors) {
    if (which == RewriteRequest::Tensors::Weights && !is_weight(name)) continue;
    listing.push_back(whole_tensor({name, tensor.type, tensor.shape}));
  }
  return listing;
}

std::map<std::string, std::string> tokenizer_files_in(const CheckpointReader& reader) {
  std::map<std::string, std::string> files;
  for (const auto& [name, listed] : reader.manifest().files) {
    if (holds_tensors(name)) continue;
    files[name] = CheckedFile(reader.folder() + "/" + name).content(kMaxTokenizerBytes);
  }
  return files;
}

}  // namespace

void rewrite_checkpoint(const RewriteRequest& request, FileSystem& files) {
  if (files.exists(request.to)) throw IoError(request.to, -1, "is there already");
  CheckpointReader reader(request.from);
  reader.verify();
  const BoxRows rows = [&](const PlannedBox& planned, int64_t begin, int64_t end) {
    mesh::Box box = planned.box;
    if (!box.begin.empty()) {
      box.end[0] = box.begin[0] + end;
      box.begin[0] += begin;
    }
    return reader.read(planned.tensor.name, box);
  };
  save_streamed({.to = request.to,
                 .listing = listed_in(reader.manifest(), request.tensors),
                 .rows = rows,
                 .info = reader.manifest().info,
                 .tokenizer_files = tokenizer_files_in(reader),
                 .ranks = request.ranks},
                files);
}

}  // namespace braid::ckpt
