// Exchanging short texts between ranks, such as what each holds or how its part went.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid::ckpt {

// Errors agreed on by all ranks: if one rank fails, all ranks throw, so that none continues alone.

// Collective. Runs `step` on every rank, and returns where none has thrown. Else all throw the same: the IoError or
// RunError of the lowest rank that has one, or one ConfigError with the problems of all, each once. A lack of memory is
// a RunError. Other errors end this rank alone.
void all_or_none(const std::function<void()>& step, Communicator& world);

// Collective. Everyone's text, by rank. The messages travel in tensors on `device`.
std::vector<std::string> all_gather_text(const std::string& mine, at::Device device, Communicator& world);

// Collective. On rank 0 everyone's text, by rank; elsewhere nothing.
std::vector<std::string> texts_at_rank_0(const std::string& mine, at::Device device, Communicator& world);

// Collective. Rank 0's text.
std::string text_of_rank_0(const std::string& mine, at::Device device, Communicator& world);

// Runs `step`. An IoError becomes text that travels, empty when there was none.
std::string fault_of(const std::function<void()>& step);
// Throws it again.
[[noreturn]] void throw_fault(const std::string& fault);

}  // namespace braid::ckpt
