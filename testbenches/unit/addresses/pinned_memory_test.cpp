// SPDX-License-Identifier: Apache-2.0
// The count of pinned pages (core/umem.c: npages of the region's pages, compared with RLIMIT_MEMLOCK >> PAGE_SHIFT).
#include "host_driver/pinned_memory.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace rnic::host_driver {
namespace {

TEST(PinnedMemory, CountsPagesThatAreTouched) {
  EXPECT_EQ(pinned_memory::pages_of(0x1000, 0x1000), 1u);
  EXPECT_EQ(pinned_memory::pages_of(0x1fff, 1), 1u);
  EXPECT_EQ(pinned_memory::pages_of(0x1fff, 2), 2u);
  EXPECT_EQ(pinned_memory::pages_of(0x1234, 0x1000), 2u);
  EXPECT_EQ(pinned_memory::pages_of(0x1000, 0), 0u);
}

TEST(PinnedMemory, IsLimitedInWholePages) {
  pinned_memory p(2 * 4096 + 4095);
  EXPECT_EQ(p.pin(1), 0);
  EXPECT_EQ(p.pin(2), -ENOMEM);
  EXPECT_EQ(p.bytes(), 4096u);
  EXPECT_EQ(p.pin(1), 0);
  EXPECT_EQ(p.pin(1), -ENOMEM);
  p.unpin(2);
  EXPECT_EQ(p.pin(2), 0);
}

TEST(PinnedMemory, DoorbellRecordsShareTheirPage) {
  pinned_memory p(4096);
  EXPECT_EQ(p.pin_record(0x5008), 0);
  EXPECT_EQ(p.pin_record(0x5010), 0);
  EXPECT_EQ(p.pin_record(0x6000), -ENOMEM);
  p.unpin_record(0x5008);
  EXPECT_EQ(p.bytes(), 4096u);
  p.unpin_record(0x5010);
  EXPECT_EQ(p.bytes(), 0u);
  EXPECT_EQ(p.pin_record(0x6000), 0);
}

TEST(PinnedMemory, HasNoLimitByDefault) {
  pinned_memory p(no_memlock);
  EXPECT_FALSE(p.is_limited());
  EXPECT_EQ(p.pin(std::uint64_t{1} << 40), 0);
}

}  // namespace
}  // namespace rnic::host_driver
