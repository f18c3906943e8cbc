// braid token: draws a new secret for a job, and prints it or writes it to a new file. control/job_token.h reads it.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <iostream>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/cli/arguments.h"
#include "braid/cli/commands.h"
#include "braid/cli/option_rules.h"
#include "braid/control/job_token.h"

namespace braid::cli {
namespace {

// Creates the file with its final mode, so that no other user can open it in between.
void write_token_file(const std::string& path, const std::string& token) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0 && errno == EEXIST) {
    throw ConfigError({{"--out", path, "must be a file that is not there yet: a job may rely on the one that is", ""}});
  }
  if (descriptor < 0) throw_system_fault(path, "create");
  const std::string line = token + "\n";
  const bool written =
      ::write(descriptor, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && ::fsync(descriptor) == 0;
  const std::error_code fault(errno, std::generic_category());
  ::close(descriptor);
  if (written) return;
  ::unlink(path.c_str());
  throw_system_fault(path, "write", fault);
}

}  // namespace

int token_command(const Words& words) {
  CLI::App app("Makes a new secret for a job on several hosts: all of them are given the same one.", "braid token");
  std::string out;
  app.add_option("--out", out, "file to make, which only its owner may read; else it is printed")->check(output_name());
  if (const auto code = parse_words(app, words)) return *code;
  const std::string token = control::new_token_text();
  if (out.empty()) {
    std::cout << token << "\n";
  } else {
    write_token_file(out, token);
  }
  return 0;
}

}  // namespace braid::cli
