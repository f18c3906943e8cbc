// Values as bytes, to be read by another process of the same program. Plain data are copied as they are, and must
// point to nothing. Of a struct that holds strings or vectors, a function beside it says the members, once for both
// directions:
//
//   template <class Pack>
//   void members(Pack& pack, Unit& unit) {
//     pack(unit.name, unit.forward);
//   }
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace braid {

class Packer {
 public:
  template <class... Values>
  void operator()(Values&... values) {
    (add(values), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <class Value>
  void add(Value& value) {
    static_assert(!std::is_pointer_v<Value> && !std::is_same_v<Value, std::string_view>, "read by another process");
    if constexpr (std::is_trivially_copyable_v<Value>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      members(*this, value);
    }
  }
  template <class Value>
  void add(std::vector<Value>& values) {
    uint64_t count = values.size();
    add(count);
    for (Value& value : values) add(value);
  }
  void add(std::string& text) {
    uint64_t count = text.size();
    add(count);
    bytes_ += text;
  }

  std::string bytes_;
};

// Reads what a Packer wrote, member by member; after a place where bytes are missing, nothing.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}

  template <class... Values>
  void operator()(Values&... values) {
    (add(values), ...);
  }
  // Whether all that was read was there.
  bool whole() const { return whole_; }

 private:
  template <class Value>
  void add(Value& value) {
    if constexpr (std::is_trivially_copyable_v<Value>) {
      const std::string_view bytes = next(sizeof value);
      if (whole_) std::memcpy(&value, bytes.data(), sizeof value);
    } else {
      members(*this, value);
    }
  }
  template <class Value>
  void add(std::vector<Value>& values) {
    uint64_t count = 0;
    add(count);
    for (values.clear(); whole_ && values.size() < count;) add(values.emplace_back());
  }
  void add(std::string& text) {
    uint64_t count = 0;
    add(count);
    text = next(count);
  }
  std::string_view next(uint64_t count) {
    whole_ = whole_ && count <= left_.size();
    if (!whole_) return {};
    const std::string_view bytes = left_.substr(0, count);
    left_.remove_prefix(count);
    return bytes;
  }

  std::string_view left_;
  bool whole_ = true;
};

template <class Value>
std::string packed(Value value) {
  Packer pack;
  pack(value);
  return pack.take();
}

// Nothing where `bytes` are only the beginning of what packed() gave.
template <class Value>
std::optional<Value> unpacked(std::string_view bytes) {
  Unpacker unpack(bytes);
  Value value;
  unpack(value);
  return unpack.whole() ? std::optional(std::move(value)) : std::nullopt;
}

}  // namespace braid
