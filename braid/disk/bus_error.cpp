// The handler calls only what is safe in a handler: atomic loads, write(2), signal(2), raise(3)
// and _exit(2).
#include "braid/disk/bus_error.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <string_view>

namespace braid::disk {
namespace {

constexpr int kRunFailed = 3;  // exit code of RunError (base/errors.h)
constexpr std::string_view kSentence =
    "braid: a disk with scratch files (memory.paths, or train.out) failed while a checkpoint was saved or read, or "
    "replicas were compared; what was saved before is whole\n";

struct Mapped {
  std::atomic<uintptr_t> begin{0}, end{0};  // begin 0: free
};

std::array<Mapped, kMostMapped>& all_mapped() {
  static std::array<Mapped, kMostMapped> all;
  return all;
}

uintptr_t address_of(std::span<const std::byte> bytes) { return reinterpret_cast<uintptr_t>(bytes.data()); }

void on_bus_error(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Mapped& mapped : all_mapped()) {
    if (address < mapped.begin || address >= mapped.end) continue;
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kSentence.data(), kSentence.size());
    ::_exit(kRunFailed);
  }
  ::signal(signal, SIG_DFL);
  // An access happens again. A signal of kill(2), or of a memory error that no access met, does not.
  if (info->si_code <= 0 || info->si_code == BUS_MCEERR_AO) ::raise(signal);
}

}  // namespace

void end_with_message_on_bus_error() {
  all_mapped();
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

void add_mapped(std::span<const std::byte> bytes) {
  for (Mapped& mapped : all_mapped()) {
    uintptr_t none = 0;
    if (!mapped.begin.compare_exchange_strong(none, address_of(bytes))) continue;
    mapped.end = address_of(bytes) + bytes.size();
    return;
  }
}

void remove_mapped(std::span<const std::byte> bytes) {
  for (Mapped& mapped : all_mapped()) {
    if (mapped.begin != address_of(bytes)) continue;
    mapped.end = 0;
    mapped.begin = 0;
    return;
  }
}

}  // namespace braid::disk
