// Makes the threads of LibTorch sleep while they wait for each other, in an executable that links this file (the target
// braid_passive_waiting).
//
// By default a waiting thread of GNU's OpenMP runtime spins 300,000 times before it sleeps. If the machine is also busy
// with something else, the thread spins on the core that the thread it waits for needs. The runtime reads its policy
// from the environment, once, in a constructor of its shared library. No call changes the policy later, so main() is
// too late. An executable's .preinit_array runs before the constructors of its libraries, but the C library reads the
// environment again after it. So the executable executes itself again, once, when only the dynamic loader has run.
//
// If OMP_WAIT_POLICY or GOMP_SPINCOUNT is set, it keeps its value, and the executable does not start again.
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

// Executes the program again with OMP_WAIT_POLICY=passive. No constructor of a library has run yet. So this function
// allocates no heap memory, and calls only functions of the C library that need no initialisation.
void start_again_to_wait_passively(int, char** argv, char** environment) {
  size_t count = 0;
  for (; environment[count] != nullptr; ++count) {
    if (says_how_to_wait(environment[count])) return;
  }
  if (getauxval(AT_BASE) == 0) return;  // the user started the dynamic loader, with this file as its argument
  char policy[] = "OMP_WAIT_POLICY=passive";
  auto** with_policy = static_cast<char**>(alloca((count + 2) * sizeof(char*)));
  std::memcpy(with_policy, environment, count * sizeof(char*));
  with_policy[count] = policy;
  with_policy[count + 1] = nullptr;
  // AT_EXECFN is the path that started the program. If execve() fails, the program continues with its old policy.
  execve(reinterpret_cast<const char*>(getauxval(AT_EXECFN)), argv, with_policy);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const at_start)(int, char**,
                                                                     char**) = start_again_to_wait_passively;

}  // namespace
