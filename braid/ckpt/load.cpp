// Two orders of a load. load_checkpoint() verifies all blocks before it writes any tensor. load_in_one_pass() verifies
// each block of at most kBlockBytes just before it writes that block's bytes.
#include <memory>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/checkpoint_reader.h"
#include "braid/ckpt/exchange.h"
#include "braid/ckpt/manifest.h"
#include "braid/comm/agree.h"

namespace braid::ckpt {
namespace {

void refuse_differences(const CheckpointReader& reader, const std::vector<PlacedTensor>& tensors) {
  auto problems = reader.differences(tensors);
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

}  // namespace

CheckpointInfo read_checkpoint_info(const std::string& directory) {
  return read_manifest(found_directory(directory)).info;
}

std::string tokenizer_folder(const std::string& directory) {
  const std::string found = found_directory(directory);
  const Manifest manifest = read_manifest(found);
  CheckpointFiles files(found, manifest);
  for (const std::string& name : names_in(found)) {  // reading a tokenizer follows links, also of files not listed
    const std::string path = cat(found, "/", name);
    if (is_link(path)) throw IoError(path, -1, "is a link; a checkpoint has none");
  }
  bool any = false;
  for (const auto& [name, listed] : manifest.files) {
    if (holds_tensors(name)) continue;
    files.verify(name);
    any = true;
  }
  return any ? found : "";
}

void load_checkpoint(const std::string& directory, const std::vector<PlacedTensor>& tensors) {
  CheckpointReader reader(directory);
  refuse_differences(reader, tensors);
  BlockReads reads = reader.reads_of(tensors);
  reads.verify();
  reads.fill();
}

void load_in_one_pass(const std::string& directory, const std::vector<PlacedTensor>& tensors, Communicator& world) {
  std::unique_ptr<CheckpointReader> reader;
  std::unique_ptr<BlockReads> reads;
  const auto open = [&] {
    reader = std::make_unique<CheckpointReader>(directory);
    refuse_differences(*reader, tensors);
    reads.reset(new BlockReads(reader->reads_of(tensors)));
  };
  all_or_none(open, world);
  const std::vector<int64_t> readers = comm::agree(world, "readers of blocks", reads->wanted(), ReduceOp::Sum);
  const auto read = [&] {
    reader->verify_large_blocks(world.rank(), world.size());
    reads->fill_compared(readers);
  };
  all_or_none(read, world);
}

void verify_checkpoint(const std::string& directory) { CheckpointReader(directory).verify(); }

}  // namespace braid::ckpt
