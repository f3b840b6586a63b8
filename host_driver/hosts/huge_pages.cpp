// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hosts/huge_pages.h"

#include <malloc.h>
#include <sys/mman.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace rnic::hosts {

namespace {

constexpr std::size_t page = std::size_t{1} << 21;
constexpr std::size_t of_a_host = std::size_t{6} << 20;  // adapter, firmware, driver: 4.5 MiB measured, and room
constexpr unsigned most_hosts = 4096;

}  // namespace

void use_huge_pages([[maybe_unused]] unsigned hosts) {
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
  if (hosts > most_hosts) return;
  // The heap grows once by what is needed, and does not shrink: advice is for addresses that are mapped already.
  constexpr int usual_mappings = 65'536, largest_in_heap = 32 << 20;
  if (mallopt(M_TRIM_THRESHOLD, INT_MAX) == 0 || mallopt(M_MMAP_THRESHOLD, largest_in_heap) == 0) return;
  const std::size_t bytes = hosts * of_a_host + 2 * page;
  mallopt(M_MMAP_MAX, 0);
  void* const place = std::malloc(bytes);
  mallopt(M_MMAP_MAX, usual_mappings);
  if (place == nullptr) return;
  const auto begin = (reinterpret_cast<std::uintptr_t>(place) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(place) + bytes) / page * page;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  std::free(place);
#endif
}

}  // namespace rnic::hosts
