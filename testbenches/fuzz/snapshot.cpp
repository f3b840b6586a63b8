// SPDX-License-Identifier: Apache-2.0
#include "testbenches/fuzz/snapshot.h"

#include <sanitizer/allocator_interface.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iterator>

#include "testbenches/fuzz/property.h"

// Where the compiler counts, one byte for each edge of the program. The linker makes the names.
extern "C" {
extern std::uint8_t counters_begin[] __asm__("__start___sancov_cntrs") __attribute__((visibility("hidden")));
extern std::uint8_t counters_end[] __asm__("__stop___sancov_cntrs") __attribute__((visibility("hidden")));
}

namespace rnic::fuzz {

namespace {

std::uint8_t* whole_begin;  // the pages that hold nothing but counters
std::uint8_t* whole_end;
std::uint8_t* edges;  // shared: what of the counters lies on the first and the last page

void* share(void* at, std::size_t bytes) {
  const int flags = MAP_SHARED | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0);
  void* const p = ::mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (p == MAP_FAILED) broken("no memory for shared counters");
  return p;
}

std::uint8_t* page_at_or_after(std::uint8_t* p, std::uintptr_t page) {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  return p + ((page - at % page) % page);
}

void save_edges() {
  std::uint8_t* const to = std::copy(counters_begin, whole_begin, edges);
  std::copy(whole_end, counters_end, to);
}

void load_edges() {
  std::copy_n(edges, whole_begin - counters_begin, counters_begin);
  std::copy_n(edges + (whole_begin - counters_begin), counters_end - whole_end, whole_end);
}

/// The fuzzer's clock looks at it each second, in this process too: timers do not come along.
void start_clock() {
  const itimerval each_second{{1, 0}, {1, 0}};
  ::setitimer(ITIMER_REAL, &each_second, nullptr);
}

[[noreturn]] void run_copy(const std::function<void()>& body, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  start_clock();
  try {
    body();
  } catch (const std::exception& e) {
    broken(std::string("an exception that nobody took: ") + e.what());
  }
  save_edges();
  ::_exit(0);
}

}  // namespace

void take_snapshot() {
  // A copy has no other threads, but the locks that they held, that of the allocator for one, stay taken in it.
  const std::filesystem::directory_iterator threads("/proc/self/task");
  if (std::distance(begin(threads), end(threads)) != 1)
    broken("copies are made of a process with one thread: -rss_limit_mb=0");
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  whole_begin = page_at_or_after(counters_begin, page);
  whole_end = page_at_or_after(counters_end + 1, page) - page;
  if (whole_begin >= whole_end) whole_begin = whole_end = counters_end;
  edges = static_cast<std::uint8_t*>(share(nullptr, 4 * page));
  const auto bytes = static_cast<std::size_t>(whole_end - whole_begin);
  if (bytes != 0) share(whole_begin, bytes);  // the counts so far are of no use
}

void in_copy(const std::function<void()>& body) {
  const pid_t parent = ::getpid(), copy = ::fork();
  if (copy < 0) broken("no process for an input");
  if (copy == 0) run_copy(body, parent);
  int status = 0;
  while (::waitpid(copy, &status, 0) < 0) {
    if (errno != EINTR) broken("the copy is gone");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    load_edges();
    return;
  }
  // Its words and its input are there already, unless somebody killed it.
  if (WIFSIGNALED(status)) broken(std::string("the copy was killed by signal ") + ::strsignal(WTERMSIG(status)));
  std::_Exit(WEXITSTATUS(status));
}

std::size_t heap_bytes() { return ::__sanitizer_get_current_allocated_bytes(); }

}  // namespace rnic::fuzz
