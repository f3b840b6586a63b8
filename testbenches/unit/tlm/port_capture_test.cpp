// SPDX-License-Identifier: Apache-2.0
// What a capture of many ports writes, read block by block as draft-ietf-opsawg-pcapng says.
#include "tlm/port_capture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "testbenches/unit/tlm/filled_frame.h"

namespace rnic::tlm::test {
namespace {

constexpr std::uint32_t section_header = 0x0a0d0d0a, interface_description = 1, enhanced_packet = 6;
constexpr unsigned comment_option = 1, name_option = 2, flags_option = 2, resolution_option = 9, fcs_option = 13;
constexpr unsigned inbound = 1, outbound = 2;

struct packet {
  std::uint32_t interface = 0, length = 0, flags = 0;
  std::uint64_t ns = 0;
  std::uint8_t first = 0;  // byte
  std::string comment;
};
struct file_content {
  std::vector<std::string> names, resolutions, fcs_bytes;  // of interfaces
  std::vector<packet> packets;
};

class block_reader {
 public:
  explicit block_reader(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    bytes_ = {std::istreambuf_iterator<char>(in), {}};
  }
  file_content all() {
    file_content c;
    for (std::size_t at = 0; at < bytes_.size();) {
      const std::uint32_t type = u32(at), length = u32(at + 4);
      EXPECT_EQ(length % 4, 0u);
      EXPECT_EQ(u32(at + length - 4), length);
      EXPECT_EQ(type == section_header, at == 0);
      if (type == interface_description) {
        EXPECT_TRUE(c.packets.empty());
        c.names.push_back(option(at + 16, name_option));
        c.resolutions.push_back(option(at + 16, resolution_option));
        c.fcs_bytes.push_back(option(at + 16, fcs_option));
      }
      if (type == enhanced_packet) c.packets.push_back(packet_at(at));
      at += length;
    }
    return c;
  }

 private:
  packet packet_at(std::size_t at) const {
    packet p;
    p.interface = u32(at + 8);
    p.ns = std::uint64_t{u32(at + 12)} << 32 | u32(at + 16);
    p.length = u32(at + 20);
    EXPECT_EQ(u32(at + 24), p.length);  // nothing is cut
    p.first = static_cast<std::uint8_t>(bytes_[at + 28]);
    const std::size_t options = at + 28 + (p.length + 3) / 4 * 4;
    const std::string flags = option(options, flags_option);
    std::memcpy(&p.flags, flags.data(), std::min<std::size_t>(flags.size(), 4));
    p.comment = option(options, comment_option);
    return p;
  }
  std::string option(std::size_t at, unsigned code) const {
    for (; at + 4 <= bytes_.size() && u16(at) != 0 && u16(at) < 100; at += 4 + (u16(at + 2) + 3u) / 4 * 4)
      if (u16(at) == code) return bytes_.substr(at + 4, u16(at + 2));
    return "";
  }
  std::uint32_t u32(std::size_t at) const {
    std::uint32_t v = 0;
    std::memcpy(&v, bytes_.data() + at, 4);
    return v;
  }
  unsigned u16(std::size_t at) const { return u32(at) & 0xffff; }

  std::string bytes_;
};

/// Says of each frame what it was asked.
struct notes final : frame_notes_if {
  void describe(const payload::frame& f, sim::time_ps first_bit, sim::time_ps cable, std::string& text) override {
    text = f.length % 2 == 0 ? std::to_string(f.length) + " " + std::to_string(first_bit) + " " + std::to_string(cable)
                             : "";
  }
};

class PortCapture : public ::testing::Test {
 protected:
  PortCapture()
      : path(::testing::TempDir() + "rnic_" + ::testing::UnitTest::GetInstance()->current_test_info()->name() +
             ".pcapng") {
    std::remove(path.c_str());
  }
  ~PortCapture() override { std::remove(path.c_str()); }
  file_content content() const { return block_reader(path).all(); }
  std::string path;
  payload::frame_pool pool;
};

TEST_F(PortCapture, FramesOfAllPortsAreInOrderOfTimeAndOfPorts) {
  port_capture w(path, {});
  EXPECT_EQ(w.add_port("a.port1"), 0u);
  EXPECT_EQ(w.add_port("b.port1"), 1u);
  EXPECT_EQ(w.add_port("s1.port0"), 2u);
  w.sent(0, *frame_of(pool, 60, 1), 5'000'999);
  w.received(1, *frame_of(pool, 60, 1), 5'000'999, 15'150);  // there at 5'016'149 ps
  w.sent(2, *frame_of(pool, 61, 2), 4'000'000);              // told later, sent earlier
  w.received(2, *frame_of(pool, 63, 4), 8'000'000, 1'000'000);
  w.sent(1, *frame_of(pool, 62, 3), 9'000'000);  // at the same time at an earlier port
  w.received(1, *frame_of(pool, 64, 5), 9'000'000, 0);
  w.sent(0, *frame_of(pool, 65, 6), 7'000'000'000'000'123);  // nearly two hours
  EXPECT_EQ(w.frames(), 7u);
  w.close();
  w.sent(0, *frame_of(pool, 66, 7), 8'000'000'000'000'000);  // too late, ignored
  const file_content c = content();
  EXPECT_EQ(c.names, (std::vector<std::string>{"a.port1", "b.port1", "s1.port0"}));
  EXPECT_EQ(c.resolutions, (std::vector<std::string>(3, "\x09")));  // 10^-9 s
  EXPECT_EQ(c.fcs_bytes, (std::vector<std::string>(3, "")));
  const packet expected[] = {{2, 61, outbound, 4'000, 2, ""},
                             {0, 60, outbound, 5'000, 1, ""},
                             {1, 60, inbound, 5'016, 1, ""},
                             {1, 62, outbound, 9'000, 3, ""},
                             {1, 64, inbound, 9'000, 5, ""},
                             {2, 63, inbound, 9'000, 4, ""},
                             {0, 65, outbound, 7'000'000'000'000, 6, ""}};
  ASSERT_EQ(c.packets.size(), std::size(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    const packet &got = c.packets[i], &e = expected[i];
    EXPECT_EQ(std::tie(got.interface, got.length, got.flags, got.ns, got.first, got.comment),
              std::tie(e.interface, e.length, e.flags, e.ns, e.first, e.comment))
        << i << ": interface " << got.interface << ", " << got.length << " bytes, at " << got.ns;
  }
}

TEST_F(PortCapture, CommentsAreThoseOfEachPlaceAndNoneIsLeftOver) {
  port_capture w(path, {});
  w.add_port("a");
  w.add_port("b");
  notes of_all;
  for (unsigned round = 0; round < 3; ++round) {  // places of records are used again
    const sim::time_ps at = (round + 1) * 10'000'000;
    w.set_notes(round == 2 ? nullptr : &of_all);
    w.sent(0, *frame_of(pool, 60, 1), at);
    w.received(1, *frame_of(pool, 60, 1), at, 15'150);
    w.sent(1, *frame_of(pool, 61, 2), at + 20'000);
  }
  w.close();
  std::vector<std::string> comments;
  for (const packet& p : content().packets) comments.push_back(p.comment);
  EXPECT_EQ(comments, (std::vector<std::string>{"60 10000000 0", "60 10000000 15150", "", "60 20000000 0",
                                                "60 20000000 15150", "", "", "", ""}));
}

TEST_F(PortCapture, AWrongFcsIsSeenWithFcsAlone) {
  for (const bool with : {false, true}) {
    capture_writer::config options;
    options.fcs = with;
    options.overwrite = true;
    port_capture w(path, options);
    w.add_port("a");
    w.add_port("b");
    const payload::frame_ptr good = frame_of(pool, 60, 1), bad = frame_of(pool, 64, 2);
    bad->fcs ^= 0x100;
    w.sent(0, *bad, 1'000'000);
    w.received(1, *good, 1'000'000, 0);
    w.close();
    EXPECT_EQ(w.wrong_fcs(), with ? 0u : 1u);
    EXPECT_EQ(w.frames(), with ? 2u : 1u);
    const file_content c = content();
    EXPECT_EQ(c.fcs_bytes, (std::vector<std::string>(2, with ? "\4" : "")));
    ASSERT_EQ(c.packets.size(), with ? 2u : 1u);
    EXPECT_EQ(c.packets.front().length, with ? 68u : 60u);
    // draft-ietf-opsawg-pcapng 4.3.1: bits 8 to 5 of the flags are the length of the FCS.
    EXPECT_EQ(c.packets.front().flags, with ? outbound | 4u << 5 : std::uint32_t{inbound});
  }
}

// What is told later may be earlier, as long as it is not older than the writer waits; what one port sends at one time
// stays in its order.
TEST_F(PortCapture, FramesWaitForEarlierOnes) {
  capture_writer::config options;
  options.reorder_ps = 1'000'000;
  port_capture w(path, options);
  w.add_port("a");
  w.add_port("b");
  for (std::uint8_t n = 1; n <= 3; ++n) w.sent(0, *frame_of(pool, 60, n), 5'000'000);
  w.sent(1, *frame_of(pool, 60, 4), 4'500'000);
  w.sent(1, *frame_of(pool, 60, 5), 6'000'000);
  w.sent(0, *frame_of(pool, 60, 6), 5'000'000);
  w.close();
  std::string order;
  for (const packet& p : content().packets) order += std::to_string(p.first);
  EXPECT_EQ(order, "412365");
}

TEST_F(PortCapture, PortsAreThereWithoutFramesAndAFileOfTheUsersStays) {
  {
    port_capture w(path, {});
    w.add_port("a");
  }
  EXPECT_EQ(content().names, std::vector<std::string>{"a"});
  EXPECT_THROW(port_capture(path, {}), capture_error);
  EXPECT_EQ(content().names, std::vector<std::string>{"a"});
  capture_writer::config over;
  over.overwrite = true;
  port_capture w("/dev/full", over);
  w.add_port("a");
  EXPECT_THROW(w.close(), capture_error);
}

}  // namespace
}  // namespace rnic::tlm::test
