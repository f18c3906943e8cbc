// Reserves addresses, and maps the files of the disk into them.
#include "braid/disk/mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "braid/base/text.h"
#include "braid/disk/bus_error.h"

namespace braid::disk {

Mapping::Mapping(Disk& disk, int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  void* const memory = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw RunError(cat("no addresses for scratch space: ", std::strerror(errno)));
  bytes_ = {static_cast<std::byte*>(memory), size};
  try {
    disk.map_at(bytes_.data(), 0, bytes);
  } catch (...) {
    ::munmap(memory, size);
    throw;
  }
  add_mapped(bytes_);
}

Mapping::~Mapping() {
  remove_mapped(bytes_);
  ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace braid::disk
