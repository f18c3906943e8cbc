// A TensorBoard event file of scalars, written while a run goes on.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid::report {

// TFRecord, the framing of TensorBoard's event files: length, check sum, bytes, check sum.

// CRC-32C (Castagnoli), as RFC 3720 section 12.1 defines it.
uint32_t crc32c(std::string_view bytes);

// One record: the length as 8 bytes, its masked check sum, the bytes, their masked check sum; all little-endian. The
// mask is rotate-right by 15 plus 0xa282ead8 (tensorflow/core/lib/hash/crc32c.h).
std::string tf_record(std::string_view bytes);

struct Scalar {
  std::string tag;   // "loss/train": the part before the slash groups charts
  double value = 0;  // kept as float32; one that is not finite is left out
};

struct ScalarEvent {
  double wall_seconds = 0;  // since 1970
  int64_t step = 0;
  std::vector<Scalar> scalars;
};

// Protocol buffers of tensorboard/compat/proto/event.proto, bytes as the reference writes them.
std::string encoded_file_version(double wall_seconds);
// Readers drop what earlier files of the folder say of `step` and later.
std::string encoded_session_start(double wall_seconds, int64_t step);
std::string encoded_event(const ScalarEvent& event);

// "events.out.tfevents.1700000000.host.0": readers take the files of a folder in the order of their names.
std::string event_file_name(int64_t wall_seconds, const std::string& host, int number);

// One file, which must not be there yet. Every event is handed to the operating system before write() returns. One
// thread at a time.
class TensorboardFile {
 public:
  // Writes the version, and that the run goes on after `first_step` steps: what earlier files of the folder say of
  // later steps counts no more. Throws IoError.
  TensorboardFile(std::string path, double wall_seconds, int64_t first_step);

  // Nothing where no value is finite. Throws IoError.
  void write(const ScalarEvent& event);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void append(const std::string& event);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

// A new file in `folder`, which is made when it is not there. Throws IoError.
std::unique_ptr<TensorboardFile> new_tensorboard_file(const std::string& folder, const std::string& host,
                                                      double wall_seconds, int64_t first_step);

}  // namespace braid::report
