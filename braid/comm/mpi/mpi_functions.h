// The functions of an MPI plug-in. Handles of MPI differ between implementations, so each has a plug-in of its own
// (plugin/mpi_plugin.cpp), which hides them behind this table. One thread calls all of them.
#pragma once

#include <cstdint>

namespace braid::comm::mpi {

struct MpiFunctions {
  static constexpr int kVersion = 2;

  int version;
  const char* library;  // "Open MPI 4.1.4"

  // Initialises MPI and duplicates its world. Blocks until all ranks of the launcher's world call it. Returns null, or
  // the reason why it failed.
  const char* (*start)();
  int (*rank)();
  int (*size)();
  int (*max_tag)();  // the largest tag
  // Post a transfer of at most 2^31 - 1 bytes. Return a handle; null if MPI fails.
  void* (*send)(const void* bytes, int64_t count, int peer, int tag);
  void* (*receive)(void* bytes, int64_t count, int peer, int tag);
  // Returns 1 if the transfer has ended, 0 if not, -1 if it has failed. The handle is gone unless this returns 0.
  int (*test)(void* handle);
  // Cancels a receive that no message will match, and blocks until it has ended.
  void (*cancel)(void* handle);
  // Blocks until all ranks call it.
  void (*finish)();
};

// The name and type of a plug-in's entry.
inline constexpr const char* kMpiEntryName = "braid_mpi_functions";
using MpiEntry = const MpiFunctions* (*)();

}  // namespace braid::comm::mpi
