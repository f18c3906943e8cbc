// Encodes protocol buffers without a library: scalars need only integers, byte strings, doubles, floats and messages.
#include "braid/report/tensorboard_file.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"

namespace braid::report {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // CRC-32C polynomial, bits reversed

constexpr std::array<uint32_t, 256> remainders() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

std::string little_endian(uint64_t value, int num_bytes) {
  std::string bytes;
  for (int i = 0; i < num_bytes; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

std::string masked_sum(std::string_view bytes) { return little_endian(std::rotr(crc32c(bytes), 15) + 0xa282ead8u, 4); }

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = remainders();
  uint32_t rest = 0xffffffff;
  for (const char byte : bytes) rest = (rest >> 8) ^ kTable[(rest ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~rest;
}

std::string tf_record(std::string_view bytes) {
  const std::string length = little_endian(bytes.size(), 8);
  std::string record = length + masked_sum(length);
  record += bytes;
  return record + masked_sum(bytes);
}

namespace {

// Field numbers of event.proto and summary.proto.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int kSummaryValue = 1, kTag = 1, kSimpleValue = 2;
constexpr int kStatus = 1, kStatusStart = 1;

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}

std::string key(int field, int wire_type) { return varint(static_cast<uint64_t>(field << 3 | wire_type)); }

std::string integer(int field, int64_t value) { return key(field, 0) + varint(static_cast<uint64_t>(value)); }

std::string bytes(int field, const std::string& content) { return key(field, 2) + varint(content.size()) + content; }

template <class Bits>
std::string fixed_width(int field, int wire_type, Bits bits) {
  std::string all = key(field, wire_type);
  for (size_t i = 0; i < sizeof bits; ++i) all += static_cast<char>(bits >> (8 * i) & 0xff);
  return all;
}

std::string real(int field, double value) { return fixed_width(field, 1, std::bit_cast<uint64_t>(value)); }
std::string real(int field, float value) { return fixed_width(field, 5, std::bit_cast<uint32_t>(value)); }

// A field with its default value, here step 0, is not written.
std::string step_of(int64_t step) { return step == 0 ? "" : integer(kStep, step); }

}  // namespace

std::string encoded_file_version(double wall_seconds) {
  return real(kWallTime, wall_seconds) + bytes(kFileVersion, "brain.Event:2");
}

std::string encoded_session_start(double wall_seconds, int64_t step) {
  return real(kWallTime, wall_seconds) + step_of(step) + bytes(kSessionLog, integer(kStatus, kStatusStart));
}

std::string encoded_event(const ScalarEvent& event) {
  std::string values;
  for (const Scalar& scalar : event.scalars) {
    if (!std::isfinite(scalar.value)) continue;
    values += bytes(kSummaryValue, bytes(kTag, scalar.tag) + real(kSimpleValue, static_cast<float>(scalar.value)));
  }
  return real(kWallTime, event.wall_seconds) + step_of(event.step) + bytes(kSummary, values);
}

std::string event_file_name(int64_t wall_seconds, const std::string& host, int number) {
  std::string name = "events.out.tfevents.";
  const std::string seconds = std::to_string(wall_seconds);
  name.append(seconds.size() < 10 ? 10 - seconds.size() : 0, '0');
  name += seconds + ".";
  for (const char c : host) name += c == '/' ? '_' : c;
  return cat(name, ".", number);
}

TensorboardFile::TensorboardFile(std::string path, double wall_seconds, int64_t first_step)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wbx")) {
  if (!file_) throw IoError(path_, -1, std::strerror(errno));
  append(encoded_file_version(wall_seconds));
  append(encoded_session_start(wall_seconds, first_step + 1));
}

void TensorboardFile::write(const ScalarEvent& event) {
  for (const Scalar& scalar : event.scalars) {
    if (std::isfinite(scalar.value)) return append(encoded_event(event));
  }
}

void TensorboardFile::append(const std::string& event) {
  const std::string record = tf_record(event);
  const int64_t offset = std::ftell(file_.get());
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size() || std::fflush(file_.get()) != 0) {
    throw IoError(path_, offset, std::strerror(errno));
  }
}

std::unique_ptr<TensorboardFile> new_tensorboard_file(const std::string& folder, const std::string& host,
                                                      double wall_seconds, int64_t first_step) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw IoError(folder, -1, failure.message());
  if (is_link(folder)) throw IoError(folder, -1, "is a link; events are written into no other folder");
  for (int number = 0;; ++number) {
    const std::string path =
        folder + "/" + event_file_name(static_cast<int64_t>(std::floor(wall_seconds)), host, number);
    if (path_kind(path) == PathKind::Nothing) return std::make_unique<TensorboardFile>(path, wall_seconds, first_step);
  }
}

}  // namespace braid::report
