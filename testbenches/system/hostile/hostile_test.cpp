// SPDX-License-Identifier: Apache-2.0
// Nonsense in registers, doorbells and commands: it may cost its sender something, but neither stops the adapter nor
// touches what belongs to others.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "model/abi/bar_layout.h"
#include "model/abi/device.h"
#include "testbenches/system/verbs/pair.h"

namespace rnic::system_test {
namespace {

using std::uint64_t;
namespace hcr = abi::hcr;

/// The ports came up when the drivers opened.
void forget_events(const link& l) {
  ibv_async_event e{};
  while (l.a.dev().get_async_event(&e, 1 * us) || l.b.dev().get_async_event(&e, 1 * us)) {
  }
}

/// Stores of every size to any place of the UAR pages: foreign pages, queue numbers that do not exist, BlueFlame
/// buffers with noise, and the right page with wrong numbers.
TEST(Hostile, DoorbellsOfEveryKind) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    forget_events(l);
    std::mt19937_64 random(4711);
    host_driver::bus_if& bus = *l.a.at.bus;
    constexpr uint64_t uar_bytes = 8u << 20;
    for (unsigned i = 0; i < 4000; ++i) {
      const uint64_t page = i % 2 == 0 ? random() % (uar_bytes >> 12) : 128 + random() % 16;
      const uint64_t offset = (page << 12) + random() % 4096;
      std::array<std::uint8_t, 64> noise{};
      fill_random(noise.data(), noise.size(), random);
      switch (random() % 5) {
        case 0:
          bus.mmio_write32(2, offset & ~3ull, static_cast<std::uint32_t>(random()));
          break;
        case 1:
          bus.mmio_write64(2, offset & ~7ull, random());
          break;
        case 2:
          bus.mmio_write_combined(2, offset & ~63ull, noise.data(), 64);
          break;
        case 3:
          bus.mmio_write_combined(2, offset & ~7ull, noise.data(), 1 + random() % 8);
          break;
        default:  // the register that rings, for a queue pair that is not there or not of this page
          bus.mmio_write32(2, (page << 12) + abi::uar::send_doorbell, static_cast<std::uint32_t>(random()) << 8);
      }
    }
    bus.spend_ps(1 * ms);
    expect_works(l);
    ibv_async_event e{};
    EXPECT_FALSE(l.a.dev().get_async_event(&e, 1 * us)) << "event " << e.event_type;
    EXPECT_FALSE(l.b.dev().get_async_event(&e, 1 * us)) << "event " << e.event_type;
  });
}

/// A doorbell for each queue pair of the other process, through a page that is not theirs.
TEST(Hostile, RingingForOthersDoesNothing) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    for (uint64_t page = 128; page < 400; ++page) {
      l.a.at.bus->mmio_write32(2, (page << 12) + abi::uar::send_doorbell,
                               abi::uar::send_doorbell_value(l.a.qp->qp_num));
    }
    l.a.at.bus->spend_ps(1 * ms);
    EXPECT_TRUE(l.a.silent());
    EXPECT_EQ(counted(system, "scheduler.wrong_uar"), 271U) << "all but that of the page that is theirs";
    expect_works(l);
  });
}

/// BAR0: reads of everything answer, writes of noise everywhere but the reset register change nothing that matters.
TEST(Hostile, RegistersOfEveryAddress) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    const link l = make_link(system, {});
    std::mt19937_64 random(99);
    host_driver::bus_if& bus = *l.a.at.bus;
    const auto spared = [](uint64_t offset) {
      return offset / 4 == abi::bar0::reset / 4 || (offset >= abi::bar0::msix_table && offset < abi::bar0::msix_pba) ||
             (offset >= abi::bar0::hcr && offset < abi::bar0::hcr + hcr::bytes);
    };
    for (unsigned i = 0; i < 1500; ++i) {
      const uint64_t offset = random() % abi::bar0::bytes & ~3ull;
      if (offset / 4 != abi::bar0::ownership / 4 && offset / 4 != abi::bar0::flash_semaphore / 4)
        bus.mmio_read32(0, offset);
      if (!spared(offset)) bus.mmio_write32(0, offset, static_cast<std::uint32_t>(random()));
    }
    EXPECT_EQ(bus.mmio_read32(0, abi::bar0::bytes), 0xffffffffU) << "nobody answers there";
    expect_works(l);
  });
}

/// The command register with any opcode and any parameters: each command ends with a status, none hangs, and after a
/// reset the device is as new. `mailbox`: where the parameters point to when they are not nonsense themselves.
class commander {
 public:
  commander(host_driver::bus_if& bus, uint64_t mailbox) : bus_(bus), mailbox_(mailbox) {}

  /// Status byte, or -1 when the command does not end.
  int run(std::uint32_t opcode, std::mt19937_64& random) {
    const uint64_t in = parameter(random), out = parameter(random);
    const auto modifier = static_cast<std::uint32_t>(random() % 3 == 0 ? random() : random() % 300);
    const std::array<std::uint32_t, 6> words = {high(in), low(in), modifier, high(out), low(out), token_++ << 16};
    for (unsigned i = 0; i < words.size(); ++i) bus_.mmio_write32(0, abi::bar0::hcr + 4 * i, words[i]);
    toggle_ ^= hcr::toggle;
    const auto op_modifier = static_cast<std::uint32_t>(random() % 4 == 0 ? random() % 16 : random() % 2);
    bus_.mmio_write32(0, abi::bar0::hcr + hcr::control,
                      hcr::go | toggle_ | op_modifier << hcr::opcode_modifier_shift | opcode);
    for (unsigned i = 0; i < 3000; ++i) {
      const std::uint32_t control = bus_.mmio_read32(0, abi::bar0::hcr + hcr::control);
      if ((control & hcr::go) == 0) return static_cast<int>(control >> hcr::status_shift);
      bus_.spend_ps(10 * us);
    }
    return -1;
  }

 private:
  static std::uint32_t high(uint64_t v) { return static_cast<std::uint32_t>(v >> 32); }
  static std::uint32_t low(uint64_t v) { return static_cast<std::uint32_t>(v); }
  uint64_t parameter(std::mt19937_64& random) const {
    switch (random() % 4) {
      case 0:
        return random();  // no memory there, hardly
      case 1:
        return random() % 4096;
      default:
        return mailbox_;
    }
  }
  host_driver::bus_if& bus_;
  uint64_t mailbox_;
  std::uint32_t token_ = 0x7000;
  std::uint32_t toggle_ = 0;
};

TEST(Hostile, CommandsOfEveryOpcode) {
  hosts::two_nodes system(default_system());
  run(system, [&] {
    hosts::endpoint& a = system.a();
    const auto mailbox = a.bus->allocate(4096, 4096);
    commander c(*a.bus, mailbox.bus_address);
    std::mt19937_64 random(31337);
    unsigned refused = 0, done = 0;
    for (unsigned i = 0; i < 1200; ++i) {
      fill_random(mailbox.pointer, mailbox.bytes, random);
      if (i % 3 == 0) std::memset(mailbox.pointer, 0, mailbox.bytes);
      const auto opcode = static_cast<std::uint32_t>(i % 4 == 0 ? random() % 0x1000 : random() % 0x72);
      const int status = c.run(opcode, random);
      ASSERT_GE(status, 0) << "command " << std::hex << opcode << " does not end";
      ++(status == 0 ? done : refused);
    }
    EXPECT_GT(refused, 600U);
    EXPECT_GT(done, 10U);
    a.bus->release(mailbox);
    ASSERT_EQ(a.device->reset(), 0);
    ASSERT_EQ(a.device->open(), 0);
    expect_works(make_link(system, {}));
  });
}

}  // namespace
}  // namespace rnic::system_test
