// Errors agreed on by all ranks: if one rank fails, all ranks throw, so that none continues alone.
#pragma once

#include <functional>

#include "braid/comm/communicator.h"

namespace braid::ckpt {

// Collective. Runs `step` on every rank, and returns where none has thrown. Else all throw the same: the IoError or
// RunError of the lowest rank that has one, or one ConfigError with the problems of all, each once. A lack of memory is
// a RunError. Other errors end this rank alone.
void all_or_none(const std::function<void()>& step, Communicator& world);

}  // namespace braid::ckpt
