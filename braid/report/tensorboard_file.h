// A TensorBoard event file of scalars, written during a run.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid::report {

// Returns the CRC-32C (Castagnoli) check sum, as RFC 3720 section 12.1 defines it.
uint32_t crc32c(std::string_view bytes);

// Returns one record of TFRecord, the framing of TensorBoard's event files: the length as 8 bytes, its masked check
// sum, the bytes, their masked check sum; all little-endian. The mask is rotate-right by 15 plus 0xa282ead8
// (tensorflow/core/lib/hash/crc32c.h).
std::string tf_record(std::string_view bytes);

struct Scalar {
  std::string tag;   // "loss/train": the part before the slash groups charts
  double value = 0;  // stored as float32; a value that is not finite is left out
};

struct ScalarEvent {
  double wall_seconds = 0;  // seconds since 1970
  int64_t step = 0;
  std::vector<Scalar> scalars;
};

// Encode protocol buffers of tensorboard/compat/proto/event.proto, byte for byte as the reference implementation does.
std::string encoded_file_version(double wall_seconds);
// Encodes a session start: readers drop events of `step` and later from earlier files of the folder.
std::string encoded_session_start(double wall_seconds, int64_t step);
std::string encoded_event(const ScalarEvent& event);

// Returns "events.out.tfevents.1700000000.host.0". Readers take the files of a folder in the order of their names.
std::string event_file_name(int64_t wall_seconds, const std::string& host, int number);

// One event file. Every event is passed to the operating system before write() returns. Not thread-safe.
class TensorboardFile {
 public:
  // Creates the file, and writes the version and the start of a session after `first_step` steps: readers then ignore
  // later steps in earlier files of the folder. Throws IoError, also if the file exists.
  TensorboardFile(std::string path, double wall_seconds, int64_t first_step);

  // Writes an event; writes nothing if no value is finite. Throws IoError.
  void write(const ScalarEvent& event);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void append(const std::string& event);

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

// Makes a new file in `folder`, and creates the folder if it is missing. Throws IoError.
std::unique_ptr<TensorboardFile> new_tensorboard_file(const std::string& folder, const std::string& host,
                                                      double wall_seconds, int64_t first_step);

}  // namespace braid::report
