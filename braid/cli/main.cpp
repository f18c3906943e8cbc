// The entry point.
#include "braid/cli/run_command.h"

int main(int argc, char** argv) { braid::cli::run_command(argc, argv); }
