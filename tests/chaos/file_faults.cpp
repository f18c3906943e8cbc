// A library to preload (LD_PRELOAD): one call to the file system, the n-th about a chosen place, fails or ends a
// process. It works on the program as it is: nothing in braid knows of it.
//
//   FILE_FAULTS_STATE    a file that all processes of a run share: the number of calls so far, the first process's id
//   FILE_FAULTS_PLACE    only calls with this text in a path count, such as "/step-"
//   FILE_FAULTS_CALL     only calls of this name count, such as "pread"; empty: all but pread
//   FILE_FAULTS_AT       the call that is struck, from 1; 0: none
//   FILE_FAULTS_FAULT    kill: the process that calls is killed; kill-run: the first process, and the one that calls;
//                        EIO, ENOSPC: the call fails with this error; of a pread also short: half of the bytes come,
//                        end: none come, flip: one bit of them is another; of any call cut: it succeeds, and the
//                        process's files without a name are empty from then on
//   FILE_FAULTS_LOG      a file to which each call is appended, as "pwrite run/step-2.tmp/model.safetensors"
//
// A write that is struck is half done before: torn writes are what a dying process leaves. io_uring is refused, because
// its transfers are no calls.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace {

struct Shared {
  std::atomic<uint64_t> calls;
  std::atomic<pid_t> first;
};

std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

struct Plan {
  std::string place = setting("FILE_FAULTS_PLACE"), fault = setting("FILE_FAULTS_FAULT");
  std::string call = setting("FILE_FAULTS_CALL");
  uint64_t at = std::strtoull(setting("FILE_FAULTS_AT").c_str(), nullptr, 10);
  Shared* shared = nullptr;
  int log = -1;

  Plan() {
    const std::string state = setting("FILE_FAULTS_STATE"), log_path = setting("FILE_FAULTS_LOG");
    auto* const real_open = next<int(const char*, int, ...)>("open");
    const int fd = real_open(state.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || next<int(int, off64_t)>("ftruncate64")(fd, sizeof(Shared)) != 0) std::abort();
    void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) std::abort();
    shared = static_cast<Shared*>(memory);
    pid_t nobody = 0;
    shared->first.compare_exchange_strong(nobody, ::getpid());
    if (!log_path.empty()) log = real_open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  }
};

Plan& plan() {
  static Plan* const kPlan = new Plan();  // never destroyed: calls come after globals are gone
  return *kPlan;
}

std::string path_of(int fd) {
  char name[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), name, sizeof name);
  return {name, static_cast<size_t>(size > 0 ? size : 0)};
}

enum class Strikes { No, Yes };

// Counts the call; whether it is the one.
Strikes counted(const char* call, const std::string& path) {
  Plan& p = plan();
  if (path.find(p.place) == path.npos || (p.call.empty() ? "pread" == std::string_view(call) : p.call != call)) {
    return Strikes::No;
  }
  const uint64_t number = ++p.shared->calls;
  if (p.log >= 0) {
    const std::string line = std::string(call) + " " + path + "\n";
    next<ssize_t(int, const void*, size_t)>("write")(p.log, line.data(), line.size());
  }
  return number == p.at ? Strikes::Yes : Strikes::No;
}

// Makes the files without a name empty, as a disk that has died looks to a mapping of them.
void cut_unnamed_files() {
  for (int fd = 0; fd < 1024; ++fd) {
    if (path_of(fd).find("/#") != std::string::npos) next<int(int, off64_t)>("ftruncate64")(fd, 0);
  }
}

// The process is killed, or errno is set.
void strike() {
  Plan& p = plan();
  if (p.fault == "EIO" || p.fault == "ENOSPC") {
    errno = p.fault == "EIO" ? EIO : ENOSPC;
    return;
  }
  if (p.fault == "kill-run") ::kill(p.shared->first, SIGKILL);
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

template <class Result, class... Arguments>
Result call(const char* name, const std::string& path, Arguments... arguments) {
  if (counted(name, path) == Strikes::Yes) {
    if (plan().fault != "cut") return strike(), -1;
    cut_unnamed_files();
  }
  return next<Result(Arguments...)>(name)(arguments...);
}

// Half of the bytes first, in multiples of what direct writes take where there are enough.
size_t half(size_t count) { return count >= 8192 ? count / 2 / 4096 * 4096 : count / 2; }

}  // namespace

extern "C" {

ssize_t write(int fd, const void* data, size_t count) {
  auto* const real = next<ssize_t(int, const void*, size_t)>("write");
  if (counted("write", path_of(fd)) == Strikes::No) return real(fd, data, count);
  if (half(count) > 0) real(fd, data, half(count));
  strike();
  return -1;
}
ssize_t pwrite64(int fd, const void* data, size_t count, off64_t at) {
  auto* const real = next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  if (counted("pwrite", path_of(fd)) == Strikes::No) return real(fd, data, count, at);
  if (half(count) > 0) real(fd, data, half(count), at);
  strike();
  return -1;
}
ssize_t pwrite(int fd, const void* data, size_t count, off_t at) { return pwrite64(fd, data, count, at); }
ssize_t pread64(int fd, void* data, size_t count, off64_t at) {
  auto* const real = next<ssize_t(int, void*, size_t, off64_t)>("pread64");
  if (counted("pread", path_of(fd)) == Strikes::No) return real(fd, data, count, at);
  const std::string& fault = plan().fault;
  if (fault == "end") return 0;
  if (fault == "short") return real(fd, data, half(count), at);
  if (fault != "flip") return strike(), -1;
  const ssize_t done = real(fd, data, count, at);
  if (done > 0) static_cast<char*>(data)[done / 2] ^= 1;
  return done;
}
ssize_t pread(int fd, void* data, size_t count, off_t at) { return pread64(fd, data, count, at); }
int io_uring_queue_init(unsigned, void*, unsigned) { return -EPERM; }

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & O_CREAT) != 0 && counted("create", path) == Strikes::Yes) return strike(), -1;
  return next<int(const char*, int, ...)>("open64")(path, flags, mode);
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open64(path, flags, mode);
}
int fsync(int fd) { return call<int>("fsync", path_of(fd), fd); }
int fdatasync(int fd) { return call<int>("fdatasync", path_of(fd), fd); }
int ftruncate64(int fd, off64_t size) { return call<int>("ftruncate64", path_of(fd), fd, size); }
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int mkdir(const char* path, mode_t mode) { return call<int>("mkdir", path, path, mode); }
int rmdir(const char* path) { return call<int>("rmdir", path, path); }
int unlink(const char* path) { return call<int>("unlink", path, path); }
int unlinkat(int folder, const char* path, int flags) {
  const std::string whole = folder == AT_FDCWD || path[0] == '/' ? path : path_of(folder) + "/" + path;
  return call<int>("unlinkat", whole, folder, path, flags);
}
int rename(const char* from, const char* to) { return call<int>("rename", std::string(from) + " " + to, from, to); }
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return call<int>("renameat2", std::string(from) + " " + to, from_folder, from, to_folder, to, flags);
}

}  // extern "C"
