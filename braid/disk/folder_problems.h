// Checks of a folder before a scratch file is created there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/disk/disk.h"

namespace braid::disk {

// Returns problems about `key`: the folder is missing, not a folder, not writable, in memory (tmpfs, ramfs), or has
// less than `bytes` of free space.
std::vector<Problem> folder_problems(const std::string& folder, int64_t bytes, const std::string& key);

// Returns the bytes that the files of `options` reserve on the file system of `folder`, which may hold several folders.
int64_t bytes_beside(const std::string& folder, const Options& options);

}  // namespace braid::disk
