// A plug-in for one implementation of MPI, compiled once with each that is installed (cmake/MpiPlugins.cmake).
#include <mpi.h>

#include "braid/comm/mpi/mpi_functions.h"

namespace braid::comm::mpi {
namespace {

MPI_Comm world = MPI_COMM_NULL;  // of this process, as MPI's own state is

const char* start() {
  int level = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) return "MPI_Init_thread failed";
  if (level < MPI_THREAD_FUNNELED) return "MPI was built without MPI_THREAD_FUNNELED";
  if (MPI_Comm_dup(MPI_COMM_WORLD, &world) != MPI_SUCCESS) return "MPI_Comm_dup failed";
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  return nullptr;
}

int rank() {
  int rank = 0;
  MPI_Comm_rank(world, &rank);
  return rank;
}

int size() {
  int size = 0;
  MPI_Comm_size(world, &size);
  return size;
}

// Every MPI has at least 32767 (MPI 3.1, section 8.1.2).
int max_tag() {
  void* value = nullptr;
  int found = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found);
  return found ? *static_cast<int*>(value) : 32767;
}

void* send(const void* bytes, int64_t count, int peer, int tag) {
  auto* request = new MPI_Request;
  if (MPI_Isend(bytes, static_cast<int>(count), MPI_BYTE, peer, tag, world, request) == MPI_SUCCESS) return request;
  delete request;
  return nullptr;
}

void* receive(void* bytes, int64_t count, int peer, int tag) {
  auto* request = new MPI_Request;
  if (MPI_Irecv(bytes, static_cast<int>(count), MPI_BYTE, peer, tag, world, request) == MPI_SUCCESS) return request;
  delete request;
  return nullptr;
}

int test(void* handle) {
  auto* request = static_cast<MPI_Request*>(handle);
  int ended = 0;
  const bool fails = MPI_Test(request, &ended, MPI_STATUS_IGNORE) != MPI_SUCCESS;
  if (!fails && !ended) return 0;
  delete request;
  return fails ? -1 : 1;
}

void cancel(void* handle) {
  auto* request = static_cast<MPI_Request*>(handle);
  MPI_Cancel(request);
  MPI_Wait(request, MPI_STATUS_IGNORE);
  delete request;
}

void finish() {
  MPI_Comm_free(&world);
  MPI_Finalize();
}

}  // namespace
}  // namespace braid::comm::mpi

extern "C" __attribute__((visibility("default"))) const braid::comm::mpi::MpiFunctions* braid_mpi_functions() {
  using namespace braid::comm::mpi;
  static const MpiFunctions functions = {
      MpiFunctions::kVersion, BRAID_MPI_LIBRARY, start, rank, size, max_tag, send, receive, test, cancel, finish};
  return &functions;
}
