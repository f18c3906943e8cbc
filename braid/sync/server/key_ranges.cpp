// Stores the first key of each server, and the end of the last range.
#include "braid/sync/server/key_ranges.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::sync::server {

KeyRanges::KeyRanges(int64_t num_keys, int num_servers, int64_t align) {
  check(num_keys >= 0 && num_servers > 0 && align > 0, "keys are sharded over servers in blocks");
  const int64_t blocks = (num_keys + align - 1) / align;
  for (int server = 0; server <= num_servers; ++server) {
    begins_.push_back(std::min(num_keys, blocks * server / num_servers * align));
  }
}

KeyRange KeyRanges::of(int server) const {
  check(0 <= server && server < num_servers(), "a server");
  return {begins_[static_cast<size_t>(server)], begins_[static_cast<size_t>(server) + 1]};
}

}  // namespace braid::sync::server
