#include "braid/ckpt/exchange.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "braid/base/errors.h"
#include "braid/base/memory_error.h"
#include "braid/base/packed.h"
#include "braid/base/text.h"
#include "braid/ckpt/tensor_bytes.h"
#include "braid/comm/agree.h"

namespace braid::ckpt {
std::vector<ListedTensor> listed(const std::vector<PlacedTensor>& tensors) {
  std::vector<ListedTensor> listing;
  for (const auto& [name, placement, local] : tensors) {
    check(local.sizes().equals(placement.local_shape) && local.is_contiguous(),
          cat("tensor ", name, " is contiguous and has its placement's local shape"));
    ListedTensor item{{name, element_type(local.scalar_type()), placement.global_shape}, {}};
    for (const mesh::Piece& piece : placement.pieces) {
      if (!piece.global.empty()) item.boxes.push_back(piece.global);
    }
    listing.push_back(std::move(item));
  }
  return listing;
}

template <class Pack>
void members(Pack& pack, ListedTensor& item) {
  pack(item.info.name, item.info.type, item.info.shape, item.boxes);
}

std::string packed(const std::vector<ListedTensor>& listing) { return braid::packed(listing); }

std::vector<ListedTensor> unpacked_listing(std::string_view text) {
  auto listing = unpacked<std::vector<ListedTensor>>(text);
  check(listing.has_value(), "a listing is as long as it says");
  return std::move(*listing);
}

namespace {

using nlohmann::json;

std::string outcome_of(const std::function<void()>& step) {
  json outcome;
  try {
    step();
    return {};
  } catch (const IoError& error) {
    outcome = {{"path", error.path()}, {"offset", error.offset()}, {"why", error.why()}};
  } catch (const ConfigError& error) {
    for (const Problem& each : error.problems())
      outcome["problems"].push_back({each.key, each.value, each.rule, each.nearest, each.place});
  } catch (const MemoryError& error) {
    const MemoryShortage& of = error.shortage();
    outcome = {{"failed", error.what()}, {"shortage", {of.rank, of.held_bytes, of.asked_bytes, of.limit_bytes}}};
  } catch (const RunError& error) {
    outcome = {{"failed", error.what()}};
  } catch (const std::bad_alloc&) {
    outcome = {{"failed", "there is no memory for it"}};
  } catch (const c10::OutOfMemoryError&) {
    outcome = {{"failed", "there is no memory of the device for it"}};
  }
  return outcome.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

void all_or_none(const std::function<void()>& step, Communicator& world) {
  std::vector<Problem> problems;
  for (const std::string& text : comm::gather_texts(world, "outcome of a step", outcome_of(step))) {
    if (text.empty()) continue;
    const json outcome = json::parse(text);
    if (outcome.contains("path")) throw IoError(outcome["path"], outcome["offset"], outcome["why"]);
    if (outcome.contains("shortage")) {
      const json& of = outcome["shortage"];
      throw MemoryError(outcome["failed"], {of[0], of[1], of[2], of[3]});
    }
    if (outcome.contains("failed")) throw RunError(outcome["failed"]);
    for (const json& each : outcome["problems"]) {
      const Problem problem{each[0], each[1], each[2], each[3], each[4]};
      if (std::ranges::find(problems, problem) == problems.end()) problems.push_back(problem);
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

std::string fault_of(const std::function<void()>& step) {
  try {
    step();
  } catch (const IoError& error) {
    const json fault = {error.path(), error.offset(), error.why()};
    return fault.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return {};
}

void throw_fault(const std::string& fault) {
  const auto json = json::parse(fault);
  throw IoError(json[0], json[1], json[2]);
}

}  // namespace braid::ckpt
