// The braid command as a function, for programs that are the command with something of their own, such as a model
// family (model/families.h).
#pragma once

namespace braid::cli {

// Runs the command that the arguments of main() name, and ends the process with its exit code.
[[noreturn]] void run_command(int argc, char** argv);

}  // namespace braid::cli
