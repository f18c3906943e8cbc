// The commands that measure.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace braid::cuda_check {

// Opens the device and enters it on this thread: "cuda" or "cpu". Throws ConfigError where it cannot be used.
at::Device enter(const std::string& device);

// Prints floating-point operations per second of a square product on the device, by type.
int products();

// Trains the run of `file` and its overrides on random tokens, not on its data. Prints "ready"; then for each line
// "step" the step's seconds, loss and peak memory, and for "facts" what makes operations of tokens.
int steps(const std::string& file, const std::vector<std::string>& overrides);

}  // namespace braid::cuda_check
