// The entry of an MPI plug-in for one rank that sends nothing. The call that the variable BRAID_FAKE_MPI_HANGS names,
// "start" or "finish", never returns.
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "braid/comm/mpi/mpi_functions.h"

namespace braid::comm::mpi {
namespace {

void hang_if(std::string_view call) {
  const char* const hangs = std::getenv("BRAID_FAKE_MPI_HANGS");
  while (hangs && hangs == call) pause();
}

const char* start() {
  hang_if("start");
  return nullptr;
}
int rank() { return 0; }
int size() { return 2; }
int max_tag() { return 32767; }
void* send(const void*, int64_t, int, int) { return nullptr; }
void* receive(void*, int64_t, int, int) { return nullptr; }
int test(void*) { return -1; }
void cancel(void*) {}
void finish() { hang_if("finish"); }

}  // namespace
}  // namespace braid::comm::mpi

extern "C" __attribute__((visibility("default"))) const braid::comm::mpi::MpiFunctions* braid_mpi_functions() {
  using namespace braid::comm::mpi;
  static const MpiFunctions functions = {
      MpiFunctions::kVersion, "Fake MPI 1", start, rank, size, max_tag, send, receive, test, cancel, finish};
  return &functions;
}
