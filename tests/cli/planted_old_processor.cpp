// A program that speaks in main(), and before: the guard of braid/cli/required_processor.cpp must end it earlier.
#include <cstdio>

namespace {
const int said_early = std::puts("a constructor ran");
}

int main() { return said_early > 0 ? std::puts("main ran") : 1; }
