// Exchanging short texts between ranks, such as what each holds or how its part went.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/safetensors.h"
#include "braid/comm/communicator.h"

namespace braid::ckpt {

// The tensors of one rank as text for other ranks: names, types, shapes, and the boxes that the rank holds.
struct ListedTensor {
  TensorInfo info;               // of the whole tensor
  std::vector<mesh::Box> boxes;  // empty ones left out
  bool operator==(const ListedTensor&) const = default;
};

// In the order of `tensors`. check() fails for one that is not contiguous or not of its placement's local shape.
std::vector<ListedTensor> listed(const std::vector<PlacedTensor>& tensors);

std::string packed(const std::vector<ListedTensor>& listing);
// check() fails for what packed() did not make.
std::vector<ListedTensor> unpacked_listing(std::string_view text);

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
