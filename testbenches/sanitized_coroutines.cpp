// SPDX-License-Identifier: Apache-2.0
// Linked into every program; empty but in builds with AddressSanitizer. SystemC's threads have stacks of their own,
// which the sanitizer does not know: after an exception on one of them it leaves the marks of the frames that are gone,
// and takes them for errors in the frames that come after. So what it does before an exception is done here, for the
// stack in use whichever it is.
#if defined(__SANITIZE_ADDRESS__)
#define RNIC_HANDLE_NO_RETURN __asan_handle_no_return
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)  // Clang links its runtime into the program: the linker sends the calls here
#define RNIC_HANDLE_NO_RETURN __wrap___asan_handle_no_return
#endif
#endif

#ifdef RNIC_HANDLE_NO_RETURN
#include <sanitizer/asan_interface.h>

#include <cstddef>

extern "C" void* __libc_stack_end;
extern "C" __attribute__((no_sanitize_address, visibility("default"))) void RNIC_HANDLE_NO_RETURN() {
  constexpr std::size_t deepest = 48 * 1024;  // a thread's stack has 64 KiB
  char* const from = static_cast<char*>(__builtin_frame_address(0));
  char* const end = static_cast<char*>(__libc_stack_end);  // of the process's own stack: behind it there may be nothing
  const bool near_end = from < end && static_cast<std::size_t>(end - from) < deepest;
  __asan_unpoison_memory_region(from, near_end ? static_cast<std::size_t>(end - from) : deepest);
}

/// Events whose time has not come when a kernel ends: SystemC forgets the memory that it has them in.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:sc_core::sc_event_timed::allocate\n";
}
#endif
