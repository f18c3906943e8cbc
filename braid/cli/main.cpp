// Entry: runs the command that the words name and turns errors into messages and exit codes.
#include <iostream>
#include <new>

#include "braid/base/errors.h"
#include "braid/base/process_start.h"
#include "braid/base/text.h"
#include "braid/cli/dispatch.h"

namespace {

constexpr size_t kMostOfMessage = 20'000;  // bytes

}  // namespace

int main(int argc, char** argv) {
  try {
    braid::prepare_process();
    const int code = braid::cli::dispatch({argv + 1, argv + argc});
    if (code < 2 && !std::cout.flush()) throw braid::IoError("standard output", -1, "cannot be written");
    return code;
  } catch (const braid::ConfigError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  } catch (const braid::CommError& error) {
    std::cerr << "braid: " << error.what() << "\n";
    return 3;
  } catch (const braid::IoError& error) {
    std::cerr << "braid: " << error.what() << "\n";
    return 3;
  } catch (const braid::RunError& error) {
    std::cerr << "braid: " << error.what() << "\n";
    return 3;
  } catch (const std::bad_alloc&) {
    std::cerr << "braid: there is not enough memory\n";
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "braid: internal error: " << braid::printable(error.what(), kMostOfMessage, braid::LineBreaks::Kept)
              << "\n";
    return 70;
  }
}
