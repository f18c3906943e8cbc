// The name of the op that makes a communicator's calls: "blocks.3 linear mlp.down". It travels with each call,
// so that errors name the op on both sides, and calls of different ops do not match.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace braid::comm {

// A text of up to kBytes bytes, cut to that length. It holds no pointers, so it lies in shared memory and in headers of
// messages as it is. The rest of the bytes is 0.
class OpName {
 public:
  static constexpr size_t kBytes = 64;

  OpName() = default;
  explicit OpName(std::string_view text) { append(text, 0); }

  std::string_view text() const {
    return {text_.data(), static_cast<size_t>(std::ranges::find(text_, '\0') - text_.begin())};
  }
  // Returns the name of the op's backward: "blocks.3 linear mlp.down, backward".
  OpName backward() const {
    constexpr std::string_view kSuffix = ", backward";
    OpName name = *this;
    if (!text().empty()) name.append(kSuffix, std::min(text().size(), kBytes - kSuffix.size()));
    return name;
  }

  bool operator==(const OpName&) const = default;

 private:
  void append(std::string_view text, size_t at) { text.copy(text_.data() + at, kBytes - at); }

  std::array<char, kBytes> text_{};
};

// Names the calls that this thread makes while the object lives. The innermost name counts. A name equals those of the
// other ranks at the same call.
class CallName {
 public:
  explicit CallName(const OpName& name) : before_(current()) { current() = name; }
  explicit CallName(std::string_view name) : CallName(OpName(name)) {}
  ~CallName() { current() = before_; }
  CallName(const CallName&) = delete;
  CallName& operator=(const CallName&) = delete;

  // Returns the name of the calls of this thread; an empty one outside all scopes.
  static OpName& current() {
    thread_local OpName name;
    return name;
  }

 private:
  const OpName before_;
};

}  // namespace braid::comm
