// The members of each message, said once for both directions. Numbers are little-endian.
#include "braid/control/job_message.h"

#include <algorithm>
#include <utility>

namespace braid::control {
namespace {

constexpr size_t kBeatHeadBytes = 5;  // whether there is progress, and its length

class MessageWriter {
 public:
  static constexpr bool kReads = false;

  template <class... Values>
  void operator()(const Values&... values) {
    (add(values), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void add(uint64_t number, int size) {
    for (int i = 0; i < size; ++i) bytes_ += static_cast<char>(number >> (8 * i));
  }
  void add(uint8_t number) { add(number, 1); }
  void add(uint32_t number) { add(number, 4); }
  void add(int number) { add(static_cast<uint32_t>(number)); }
  void add(const std::string& text) {
    add(static_cast<uint32_t>(text.size()));
    bytes_ += text;
  }
  template <class Value>
  void add(const std::vector<Value>& values) {
    add(static_cast<uint32_t>(values.size()));
    for (const Value& value : values) add(value);
  }
  template <class Value>
  void add(const std::optional<Value>& value) {
    add(uint8_t{value.has_value()});
    if (value) add(*value);
  }
  void add(const JobNode& node) { (*this)(node.host, node.num_ranks); }

  std::string bytes_;
};

class MessageReader {
  static constexpr size_t kLeastMemberBytes = 4;  // of a list: texts and nodes begin with a length

 public:
  static constexpr bool kReads = true;

  explicit MessageReader(std::string_view bytes) : left_(bytes) {}

  template <class... Values>
  void operator()(Values&... values) {
    (add(values), ...);
  }
  // All was there, and nothing is left.
  bool exact() const { return whole_ && left_.empty(); }
  void skip_rest() { left_ = {}; }
  void require(bool holds) { whole_ = whole_ && holds; }

 private:
  std::string_view next(size_t count) {
    whole_ = whole_ && count <= left_.size();
    if (!whole_) return {};
    const std::string_view bytes = left_.substr(0, count);
    left_.remove_prefix(count);
    return bytes;
  }
  uint64_t number(size_t size) {
    uint64_t number = 0;
    const std::string_view bytes = next(size);
    for (size_t i = 0; i < bytes.size(); ++i) number |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return number;
  }
  void add(uint8_t& value) { value = static_cast<uint8_t>(number(1)); }
  void add(uint32_t& value) { value = static_cast<uint32_t>(number(4)); }
  void add(int& value) { value = static_cast<int>(static_cast<uint32_t>(number(4))); }
  void add(std::string& text) {
    uint32_t size = 0;
    add(size);
    text = next(size);
  }
  template <class Value>
  void add(std::vector<Value>& values) {
    uint32_t count = 0;
    add(count);
    require(count <= left_.size() / kLeastMemberBytes);
    while (whole_ && values.size() < count) add(values.emplace_back());
  }
  template <class Value>
  void add(std::optional<Value>& value) {
    uint8_t there = 0;
    add(there);
    require(there <= 1);
    if (there == 1) add(value.emplace());
  }
  void add(JobNode& node) {
    (*this)(node.host, node.num_ranks);
    require(node.host.size() <= kMostHostBytes && 1 <= node.num_ranks && node.num_ranks <= kMostRanksOfNode);
  }

  std::string_view left_;
  bool whole_ = true;
};

// `Hello` and the like are constant for the writer.
template <class Wire, class Hello>
void hello_members(Wire& wire, Hello& hello) {
  wire(hello.protocol);
  if constexpr (Wire::kReads) {
    if (hello.protocol != kJobProtocol) return wire.skip_rest();
  }
  wire(hello.node, hello.num_nodes, hello.boot_id, hello.engines, hello.settings, hello.self);
}

template <class Wire, class Message>
void message_members(Wire& wire, Message& message) {
  using Plain = std::remove_const_t<Message>;
  if constexpr (std::is_same_v<Plain, JobHello>) hello_members(wire, message);
  if constexpr (std::is_same_v<Plain, JobTable>) wire(message.nodes);
  if constexpr (std::is_same_v<Plain, JobRefusal>) wire(message.reasons);
  if constexpr (std::is_same_v<Plain, JobBroadcastRequest>) wire(message.bytes);
  if constexpr (std::is_same_v<Plain, JobBroadcast>) wire(message.node, message.bytes);
  if constexpr (std::is_same_v<Plain, JobHeartbeat>) wire(message.progress);
  if constexpr (std::is_same_v<Plain, NodeFailure>) wire(message.node, message.why);
}

// Limits of each kind of message; `size` is that of its members' bytes.
bool is_within_limits(const JobMessage& message, size_t size) {
  if (std::holds_alternative<JobHello>(message)) return size <= kMostHelloBytes;
  if (const auto* word = std::get_if<JobBroadcastRequest>(&message)) return word->bytes.size() <= kMostSaidBytes;
  if (std::holds_alternative<JobHeartbeat>(message)) return size <= kMostReportBytes + kBeatHeadBytes;
  if (const auto* loss = std::get_if<NodeFailure>(&message)) return loss->why.size() <= kMostReasonBytes;
  return true;
}

void shorten(std::string& reason) { reason.resize(std::min(reason.size(), kMostReasonBytes)); }

// A refusal says as many reasons as have room.
void shorten(JobRefusal& refusal) {
  size_t bytes = 0, count = 0;
  for (std::string& reason : refusal.reasons) {
    shorten(reason);
    bytes += reason.size();
    if (bytes > kMostRefusalBytes) break;
    ++count;
  }
  refusal.reasons.resize(count);
}

// The message of kind `kind`, from `Kind` on; nothing of kinds that there are not.
template <size_t Kind = 0>
std::optional<JobMessage> message_of_kind(size_t kind, std::string_view bytes) {
  if constexpr (Kind < std::variant_size_v<JobMessage>) {
    if (kind != Kind) return message_of_kind<Kind + 1>(kind, bytes);
    std::variant_alternative_t<Kind, JobMessage> message;
    MessageReader reader(bytes);
    message_members(reader, message);
    if (reader.exact() && is_within_limits(message, bytes.size())) return message;
  }
  return std::nullopt;
}

}  // namespace

Frame framed_message(JobMessage message) {
  if (auto* refusal = std::get_if<JobRefusal>(&message)) shorten(*refusal);
  if (auto* loss = std::get_if<NodeFailure>(&message)) shorten(loss->why);
  MessageWriter writer;
  writer(static_cast<uint8_t>(message.index()));
  std::visit([&](const auto& one) { message_members(writer, one); }, message);
  return framed(writer.take());
}

std::optional<JobMessage> parse_job_message(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  return message_of_kind(static_cast<unsigned char>(bytes[0]), bytes.substr(1));
}

}  // namespace braid::control
