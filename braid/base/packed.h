// Values packed into bytes for another process, which need not be trusted. Plain data is copied as it is,
// little-endian, and must hold no pointers. A struct that holds strings, vectors or booleans has a function in its
// namespace that lists its members, for both directions:
//
//   template <class Pack>
//   void members(Pack& pack, Unit& unit) {
//     pack(unit.name, unit.forward);
//   }
//
// Strings and vectors begin with their length, of the type Length. An optional begins with a byte that is 1 if it has a
// value. A variant begins with a byte that is its index.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace braid {

static_assert(std::endian::native == std::endian::little);

// A struct with a members() function is packed member by member.
template <class Pack, class Value>
concept HasMembers = requires(Pack& pack, Value& value) {
  members(pack, value);
};

template <class Length>
class BasicPacker {
 public:
  static constexpr bool kReads = false;

  template <class... Values>
  void operator()(Values&... values) {
    (add(values), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class Value>
  void add(Value& value) {
    static_assert(!std::is_pointer_v<Value> && !std::is_same_v<Value, std::string_view>, "read by another process");
    if constexpr (HasMembers<BasicPacker, Value>) {
      members(*this, value);
    } else {
      static_assert(std::is_trivially_copyable_v<Value>, "its members() are missing");
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  template <class Value>
  void add(std::optional<Value>& value) {
    bool there = value.has_value();
    add(there);
    if (there) add(*value);
  }
  template <class... Kinds>
  void add(std::variant<Kinds...>& value) {
    auto kind = static_cast<uint8_t>(value.index());
    add(kind);
    std::visit([this](auto& one) { add(one); }, value);
  }
  template <class Value>
  void add(std::vector<Value>& values) {
    auto count = static_cast<Length>(values.size());
    add(count);
    for (Value& value : values) add(value);
  }
  void add(std::string& text) {
    auto count = static_cast<Length>(text.size());
    add(count);
    bytes_ += text;
  }

  std::string bytes_;
};

// A reader of bytes that a BasicPacker wrote. It reads member by member, and nothing more after a missing or invalid
// byte. Memory grows with the bytes that are present, not with the counts that they claim.
template <class Length>
class BasicUnpacker {
 public:
  static constexpr bool kReads = true;

  explicit BasicUnpacker(std::string_view bytes) : left_(bytes) {}

  template <class... Values>
  void operator()(Values&... values) {
    (add(values), ...);
  }
  // Returns true if all reads were valid and no bytes are left.
  bool exact() const { return whole_ && left_.empty(); }
  // For members(): require() rejects invalid values, skip_rest() ignores bytes that this version does not know.
  void require(bool holds) { whole_ = whole_ && holds; }
  void skip_rest() { left_ = {}; }

 private:
  template <class Value>
  void add(Value& value) {
    if constexpr (HasMembers<BasicUnpacker, Value>) {
      members(*this, value);
    } else {
      const std::string_view bytes = next(sizeof value);
      if (whole_) std::memcpy(&value, bytes.data(), sizeof value);
    }
  }
  void add(bool& value) {
    uint8_t byte = 0;
    add(byte);
    require(byte <= 1);
    value = whole_ && byte == 1;
  }
  template <class Value>
  void add(std::optional<Value>& value) {
    bool there = false;
    add(there);
    if (there) add(value.emplace());
  }
  template <class... Kinds>
  void add(std::variant<Kinds...>& value) {
    uint8_t kind = 0;
    add(kind);
    require(kind < sizeof...(Kinds));
    if (whole_) add_kind<0>(kind, value);
  }
  template <size_t Kind, class... Kinds>
  void add_kind(size_t kind, std::variant<Kinds...>& value) {
    if constexpr (Kind < sizeof...(Kinds)) {
      if (kind != Kind) return add_kind<Kind + 1>(kind, value);
      add(value.template emplace<Kind>());
    }
  }
  template <class Value>
  void add(std::vector<Value>& values) {
    Length count = 0;
    add(count);
    require(count <= left_.size());  // each value takes at least a byte
    for (values.clear(); whole_ && values.size() < count;) add(values.emplace_back());
  }
  void add(std::string& text) {
    Length count = 0;
    add(count);
    text = next(count);
  }
  std::string_view next(size_t count) {
    require(count <= left_.size());
    if (!whole_) return {};
    const std::string_view bytes = left_.substr(0, count);
    left_.remove_prefix(count);
    return bytes;
  }

  std::string_view left_;
  bool whole_ = true;
};

template <class Length = uint64_t, class Value>
std::string packed(Value value) {
  BasicPacker<Length> pack;
  pack(value);
  return pack.take();
}

// Returns nullopt unless `bytes` are a complete result of packed() with nothing after it.
template <class Value, class Length = uint64_t>
std::optional<Value> unpacked(std::string_view bytes) {
  BasicUnpacker<Length> unpack(bytes);
  Value value{};
  unpack(value);
  return unpack.exact() ? std::optional(std::move(value)) : std::nullopt;
}

}  // namespace braid
