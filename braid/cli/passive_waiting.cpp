// Lets the threads of LibTorch sleep while they wait for each other, in an executable that links this file (the target
// braid_passive_waiting).
//
// By default a waiting thread of GNU's OpenMP runtime looks 300,000 times before it sleeps. Where the machine does
// something else too, it does so on the core that the thread it waits for should have. The runtime reads its policy
// from the environment, once, in a constructor of its shared library, and no call changes it: main() is too late. An
// executable's .preinit_array comes before the constructors of its libraries, but the C library takes the environment
// anew after it. So the executable starts itself again, once, when nothing but the dynamic loader has worked yet.
//
// Whoever has said how threads wait (OMP_WAIT_POLICY, GOMP_SPINCOUNT) is obeyed, and the executable starts once.
#include <alloca.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace {

constexpr const char* kSaid[] = {"OMP_WAIT_POLICY=", "GOMP_SPINCOUNT="};

bool says_how_to_wait(const char* variable) {
  for (const char* name : kSaid) {
    if (std::strncmp(variable, name, std::strlen(name)) == 0) return true;
  }
  return false;
}

// No library has been constructed yet: this needs no memory of the heap, and of libraries the system's calls alone.
void start_again_to_wait_passively(int, char** argv, char** environment) {
  size_t count = 0;
  for (; environment[count] != nullptr; ++count) {
    if (says_how_to_wait(environment[count])) return;
  }
  if (getauxval(AT_BASE) == 0) return;  // a dynamic loader was started, and told to load this
  char policy[] = "OMP_WAIT_POLICY=passive";
  auto** with_policy = static_cast<char**>(alloca((count + 2) * sizeof(char*)));
  std::memcpy(with_policy, environment, count * sizeof(char*));
  with_policy[count] = policy;
  with_policy[count + 1] = nullptr;
  // By the path that it was started by; where that leads nowhere, it goes on as it is.
  execve(reinterpret_cast<const char*>(getauxval(AT_EXECFN)), argv, with_policy);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const at_start)(int, char**,
                                                                     char**) = start_again_to_wait_passively;

}  // namespace
