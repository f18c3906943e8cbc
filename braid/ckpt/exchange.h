// Exchanges short texts between ranks, such as listings of tensors and errors.
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

// A tensor in a rank's listing for other ranks: its name, type and shape, and the boxes that the rank holds.
struct ListedTensor {
  TensorInfo info;               // describes the whole tensor
  std::vector<mesh::Box> boxes;  // without empty boxes
  bool operator==(const ListedTensor&) const = default;
};

// Returns the listing of `tensors`, in their order. check() fails if a tensor is not contiguous or does not have its
// placement's local shape.
std::vector<ListedTensor> listed(const std::vector<PlacedTensor>& tensors);

std::string packed(const std::vector<ListedTensor>& listing);
// check() fails if `text` is not a result of packed().
std::vector<ListedTensor> unpacked_listing(std::string_view text);

// Collective. Runs `step` on every rank, and returns if none throws. If `step` fails on some ranks, all ranks throw the
// same error, so that none continues alone: the IoError or RunError of the lowest rank that has one, else one
// ConfigError with the problems of all ranks, each once. A lack of memory becomes a RunError. Any other exception
// leaves this rank at once, without the exchange.
void all_or_none(const std::function<void()>& step, Communicator& world);

// Runs `step`. Returns the IoError that it throws as text for other ranks; empty if there is none.
std::string fault_of(const std::function<void()>& step);
// Throws the IoError that fault_of() has returned as `fault`.
[[noreturn]] void throw_fault(const std::string& fault);

}  // namespace braid::ckpt
