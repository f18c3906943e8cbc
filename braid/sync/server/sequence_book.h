// Sorts the numbered messages of one sender, and drops repeated ones.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace braid::sync::server {

enum class Arrival {
  Kept,      // pop() returns it in its turn
  Repeated,  // arrived before
};

template <class Payload>
class SequenceBook {
 public:
  SequenceBook() = default;
  explicit SequenceBook(int64_t next) : next_(next) {}

  int64_t next() const { return next_; }

  Arrival accept(int64_t sequence, Payload payload) {
    if (sequence < next_) return Arrival::Repeated;
    return early_.try_emplace(sequence, std::move(payload)).second ? Arrival::Kept : Arrival::Repeated;
  }

  // Returns the next payload in order; nullopt if it has not arrived.
  std::optional<Payload> pop() {
    if (early_.empty() || early_.begin()->first != next_) return std::nullopt;
    std::optional<Payload> first(std::move(early_.begin()->second));
    early_.erase(early_.begin());
    ++next_;
    return first;
  }

 private:
  int64_t next_ = 0;
  std::map<int64_t, Payload> early_;
};

}  // namespace braid::sync::server
