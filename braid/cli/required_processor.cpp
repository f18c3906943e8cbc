// Ends the program with a message and exit code 3 if the processor lacks instructions that the program was compiled for
// (x86-64-v3, cmake/Toolchain.cmake). Otherwise a SIGILL would end it later. An executable that links this file (the
// target braid_required_processor) has this check.
//
// The file is compiled for any x86-64 processor. The check runs before the constructors of all libraries, so it calls
// only functions of the C library that need no initialisation.
#include <unistd.h>

#include <cstring>

namespace {

#ifdef BRAID_OLD_PROCESSOR  // defined by the test
bool supports(const char*) { return false; }
#define BRAID_SUPPORTS(feature) supports(feature)
#else
#define BRAID_SUPPORTS(feature) __builtin_cpu_supports(feature)
#endif

void write_text(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(3);
}

void refuse_old_processors(int, char** argv, char**) {
  __builtin_cpu_init();
  if (BRAID_SUPPORTS("avx2") && BRAID_SUPPORTS("fma") && BRAID_SUPPORTS("bmi") && BRAID_SUPPORTS("bmi2")) return;
  write_text(argv[0] ? argv[0] : "braid");
  write_text(
      ": this processor lacks AVX2, FMA or BMI2: the program was built for x86-64-v3 (Haswell, Zen, and newer)\n");
  _exit(3);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const at_start)(int, char**, char**) = refuse_old_processors;

}  // namespace
