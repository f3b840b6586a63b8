// SPDX-License-Identifier: Apache-2.0
// Capture files written and read, and the ways in which they can be bad.
#include "tlm/capture.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <tuple>

#include "testbenches/source_tree.h"
#include "testbenches/unit/tlm/filled_frame.h"
#include "tlm/pcapng_writer.h"

namespace rnic::tlm::test {
namespace {

std::string temporary(const std::string& name) {
  std::string path = testing::TempDir() + "rnic_capture_" + name;
  std::remove(path.c_str());
  return path;
}

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
}

std::string error_of(const std::string& path) {
  try {
    capture_reader r(path);
    return "";
  } catch (const capture_error& e) {
    return e.what();
  }
}

TEST(capture, frames_are_written_in_order_of_time) {
  const std::string path = temporary("order.pcap");
  payload::frame_pool pool;
  {
    capture_writer w(path);
    w.observe(0, *frame_of(pool, 60, 1), 5'000'999, 0);
    w.observe(1, *frame_of(pool, 61, 2), 4'000'000, 0);  // told later, sent earlier
    w.observe(1, *frame_of(pool, 62, 4), 7'000'000'000'000'123, 0);
    w.observe(0, *frame_of(pool, 63, 3), 7'000'000'000'000'123, 0);  // same time: by direction
    w.close();
    EXPECT_EQ(w.frames(), 4u);
  }
  capture_reader r(path);
  captured_frame f;
  const std::pair<std::uint32_t, std::uint64_t> expected[] = {
      {61, 4'000}, {60, 5'000}, {63, 7'000'000'000'000}, {62, 7'000'000'000'000}};
  for (const auto& [length, ns] : expected) {
    ASSERT_EQ(r.next(f), capture_reader::result::frame);
    EXPECT_EQ(f.length, length);
    EXPECT_EQ(f.wire_length, length);
    EXPECT_EQ(f.time_ns, ns);
    EXPECT_EQ(f.data[length - 1], length == 61 ? 2 : length == 60 ? 1 : length == 63 ? 3 : 4);
  }
  EXPECT_EQ(r.next(f), capture_reader::result::end);
  // Nanosecond magic, little endian; Ethernet.
  const std::string raw = content(path);
  EXPECT_EQ(raw.substr(0, 4), "\x4d\x3c\xb2\xa1");
  EXPECT_EQ(raw[20], 1);
}

TEST(capture, a_wrong_fcs_is_seen_in_captures_with_fcs_alone) {
  payload::frame_pool pool;
  const payload::frame_ptr good = frame_of(pool, 60, 1), bad = frame_of(pool, 64, 2);
  bad->fcs ^= 0x100;
  for (const bool with : {false, true}) {
    const std::string path = temporary(with ? "fcs.pcap" : "nofcs.pcap");
    capture_writer::config c;
    c.fcs = with;
    capture_writer w(path, c);
    w.observe(0, *bad, 1'000'000, 0);
    w.observe(1, *good, 2'000'000, 0);
    w.close();
    EXPECT_EQ(w.wrong_fcs(), with ? 0u : 1u);
    const std::string raw = content(path);
    EXPECT_EQ(raw.substr(20, 4), with ? std::string("\x01\0\0\x24", 4) : std::string("\x01\0\0\0", 4));
    EXPECT_EQ(raw.size(), with ? 24u + 16 + 68 + 16 + 64 : 24u + 16 + 60);
    capture_reader r(path);
    captured_frame f;
    if (with) {
      ASSERT_EQ(r.next(f), capture_reader::result::frame);
      EXPECT_TRUE(f.wrong_fcs);
      EXPECT_EQ(f.length, 64u);
      EXPECT_EQ(f.wire_length, 64u);
    }
    ASSERT_EQ(r.next(f), capture_reader::result::frame);
    EXPECT_FALSE(f.wrong_fcs);
    EXPECT_EQ(f.length, 60u);
    EXPECT_EQ(r.next(f), capture_reader::result::end);
  }
}

TEST(capture, a_stream_has_no_place_for_the_fcs_mark) {
  capture_writer::config c;
  c.fcs = c.overwrite = true;
  EXPECT_THROW(capture_writer("/dev/full", c), capture_error);
}

TEST(capture, an_existing_file_is_kept) {
  const std::string path = temporary("keep.pcap");
  put(path, "precious");
  try {
    capture_writer w(path);
    FAIL();
  } catch (const capture_error& e) {
    EXPECT_EQ(std::string(e.what()), path + ": exists already, not overwritten");
  }
  EXPECT_EQ(content(path), "precious");
  capture_writer::config over;
  over.overwrite = true;
  capture_writer(path, over).close();
  EXPECT_EQ(content(path).size(), 24u);
}

TEST(capture, a_directory_that_does_not_exist) {
  try {
    capture_writer w("/nonexistent/x.pcap");
    FAIL();
  } catch (const capture_error& e) {
    EXPECT_EQ(std::string(e.what()), "/nonexistent/x.pcap: No such file or directory");
  }
}

TEST(capture, a_full_device_is_an_error) {
  capture_writer::config over;
  over.overwrite = true;
  capture_writer w("/dev/full", over);
  payload::frame_pool pool;
  w.observe(0, *frame_of(pool, 1500, 1), 0, 0);
  EXPECT_THROW(w.close(), capture_error);
}

TEST(capture, soft_roce_trace) {
  capture_reader r(rnic::in_source_tree("traces/rc_send_mtu1024_4096B.pcap"));
  captured_frame f;
  std::uint64_t bytes = 24, last = 0;
  while (r.next(f) == capture_reader::result::frame) {
    bytes += 16 + f.length;
    EXPECT_GE(f.time_ns, last);
    last = f.time_ns;
  }
  EXPECT_EQ(r.frames(), 120u);
  EXPECT_EQ(bytes, 107'304u);  // the size of the file
  EXPECT_EQ(r.reason(), "");
}

TEST(capture, truncated_at_every_byte) {
  const std::string whole = content(rnic::in_source_tree("traces/rc_atomic_fetchadd.pcap"));
  ASSERT_EQ(whole.size(), 2'844u);
  const std::string path = temporary("cut.pcap");
  for (std::size_t n = 0; n < 400; ++n) {
    put(path, whole.substr(0, n));
    if (n < 24) {
      EXPECT_NE(error_of(path).find(path), std::string::npos) << n;
      continue;
    }
    capture_reader r(path);
    captured_frame f;
    capture_reader::result e;
    while ((e = r.next(f)) == capture_reader::result::frame) {
    }
    std::size_t at = 24;
    std::uint64_t whole_frames = 0;
    for (; at + 16 <= n; ++whole_frames) {
      const auto length = static_cast<unsigned char>(whole[at + 8]);  // all frames are shorter than 256 bytes
      if (at + 16 + length > n) break;
      at += 16 + length;
    }
    EXPECT_EQ(r.frames(), whole_frames) << n;
    EXPECT_EQ(e, at == n ? capture_reader::result::end : capture_reader::result::damaged) << n;
    if (at != n) {
      EXPECT_NE(r.reason().find("after frame " + std::to_string(whole_frames) + ": "), std::string::npos);
      EXPECT_EQ(r.next(f), capture_reader::result::damaged);
    }
  }
}

TEST(capture, damaged_record_length) {
  std::string bytes = content(rnic::in_source_tree("traces/rc_atomic_fetchadd.pcap"));
  bytes[24 + 11] = 0x7f;  // two gigabytes
  const std::string path = temporary("length.pcap");
  put(path, bytes);
  capture_reader r(path);
  captured_frame f;
  EXPECT_EQ(r.next(f), capture_reader::result::damaged);
  EXPECT_NE(r.reason().find("after frame 0: "), std::string::npos);
}

TEST(capture, not_a_capture) {
  const std::string path = temporary("text.pcap");
  put(path, "This is a text, not a capture of anything.");
  EXPECT_NE(error_of(path).find("unknown file format"), std::string::npos) << error_of(path);
  EXPECT_NE(error_of(temporary("missing.pcap")).find("No such file"), std::string::npos);
}

TEST(capture, other_link_types_are_named) {
  std::string bytes = content(rnic::in_source_tree("traces/rc_atomic_fetchadd.pcap"));
  bytes[20] = static_cast<char>(189);
  const std::string path = temporary("usb.pcap");
  put(path, bytes);
  EXPECT_EQ(error_of(path), path + ": link type is USB_LINUX, expected Ethernet, Linux cooked or raw IP");
}

std::string u16(std::uint32_t v) { return {static_cast<char>(v), static_cast<char>(v >> 8)}; }
std::string u32(std::uint32_t v) { return u16(v) + u16(v >> 16); }
std::string pcap_of(std::uint32_t link_type, const std::string& packet) {
  return u32(0xa1b23c4d) + u16(2) + u16(4) + u32(0) + u32(0) + u32(65535) + u32(link_type) + u32(1) + u32(2) +
         u32(static_cast<std::uint32_t>(packet.size())) + u32(static_cast<std::uint32_t>(packet.size()) + 10) + packet;
}

TEST(capture, a_cooked_packet_becomes_a_frame_without_destination) {
  // tcpdump.org, LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2
  const std::string address = "\x02\x11\x22\x33\x44\x55", rest("\0\0", 2);
  const auto sll = [&](char type) {
    return std::string{0, type, 0, 1, 0, 6} + address + rest + std::string("\x08\x00", 2) + "payload";
  };
  const auto sll2 = [&](char type) {
    return std::string{8, 0, 0, 0, 0, 0, 0, 3, 0, 1, type, 6} + address + rest + "payload";
  };
  const std::pair<char, frame_way> types[] = {
      {0, frame_way::to_host}, {3, frame_way::unknown}, {4, frame_way::from_host}};
  for (const auto& [type, way] : types)
    for (const auto& [link, packet] : {std::pair{113u, sll(type)}, std::pair{276u, sll2(type)}}) {
      const std::string path = temporary("cooked.pcap");
      put(path, pcap_of(link, packet));
      capture_reader r(path);
      captured_frame f;
      ASSERT_EQ(r.next(f), capture_reader::result::frame);
      const std::string frame(reinterpret_cast<const char*>(f.data), f.length);
      EXPECT_EQ(frame, std::string(6, '\0') + address + std::string("\x08\x00", 2) + "payload");
      EXPECT_EQ(f.wire_length, f.length + 10);
      EXPECT_EQ(f.link, frame_link::cooked);
      EXPECT_EQ(f.way, way);
      EXPECT_TRUE(f.no_destination);
      EXPECT_FALSE(f.no_source);
      EXPECT_EQ(r.next(f), capture_reader::result::end);
    }
}

TEST(capture, a_cooked_packet_may_be_cut_anywhere) {
  const std::string whole = std::string{8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6} + std::string(8, 'a') + "payload";
  for (std::size_t n = 0; n <= whole.size(); ++n) {
    const std::string path = temporary("cooked_cut.pcap");
    put(path, pcap_of(276, whole.substr(0, n)));
    capture_reader r(path);
    captured_frame f;
    ASSERT_EQ(r.next(f), capture_reader::result::frame);
    EXPECT_EQ(f.length, n < 20 ? 0 : n - 6) << n;
    EXPECT_GT(f.wire_length, f.length) << n;
  }
}

TEST(capture, raw_ip_gets_an_ethernet_header) {
  for (const auto& [first, type] :
       {std::pair{'\x45', "\x08\x00"}, std::pair{'\x60', "\x86\xdd"}, std::pair{'x', "\0\0"}}) {
    const std::string path = temporary("ip.pcap");
    put(path, pcap_of(101, std::string(1, first) + "packet"));
    capture_reader r(path);
    captured_frame f;
    ASSERT_EQ(r.next(f), capture_reader::result::frame);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(f.data), f.length),
              std::string(12, '\0') + std::string(type, 2) + std::string(1, first) + "packet");
    EXPECT_EQ(f.link, frame_link::ip);
    EXPECT_TRUE(f.no_destination && f.no_source);
  }
}

TEST(capture, an_empty_file_is_named) {
  const std::string path = temporary("empty.pcap");
  put(path, "");
  EXPECT_EQ(error_of(path), path + ": is empty");
}

/// A pcapng file by hand (draft-ietf-opsawg-pcapng): section header, interface with nanoseconds, one packet.
TEST(capture, pcapng_with_nanoseconds) {
  const auto word = [](std::uint32_t v) {
    return std::string{static_cast<char>(v), static_cast<char>(v >> 8), static_cast<char>(v >> 16),
                       static_cast<char>(v >> 24)};
  };
  std::string s = word(0x0a0d0d0a) + word(28) + word(0x1a2b3c4d) + word(0x00000001) + word(~0u) + word(~0u) + word(28);
  s += word(1) + word(32) + word(1) + word(0) + word(0x00010009) + word(9) + word(0) + word(32);
  const std::uint64_t ns = 1'700'000'000'123'456'789;
  s += word(6) + word(32 + 16) + word(0) + word(static_cast<std::uint32_t>(ns >> 32)) +
       word(static_cast<std::uint32_t>(ns)) + word(14) + word(60) + std::string(14, 'x') + std::string(2, '\0') +
       word(32 + 16);
  const std::string path = temporary("ng.pcapng");
  put(path, s);
  capture_reader r(path);
  captured_frame f;
  ASSERT_EQ(r.next(f), capture_reader::result::frame) << r.reason();
  EXPECT_EQ(f.length, 14u);
  EXPECT_EQ(f.wire_length, 60u);
  EXPECT_EQ(f.time_ns, ns);
  EXPECT_EQ(r.next(f), capture_reader::result::end);
}

/// The comment and what surrounds it are for tshark to read (system/replay.report.comments); here that nothing is lost.
TEST(capture, a_pcapng_file_has_its_frames_in_order_and_in_its_own_time) {
  const std::string path = temporary("written.pcapng");
  payload::frame_pool pool;
  {
    pcapng_writer::config c;
    c.names[0] = "out";
    c.names[1] = "in";
    pcapng_writer w(path, c);
    w.set_clock({1'000'000, 1'700'000'000'000'000'000});
    w.observe(0, *frame_of(pool, 60, 1), 5'000'999, 0);
    w.observe(1, *frame_of(pool, 61, 2), 4'000'000, 0);
    w.observe(1, *frame_of(pool, 62, 3), 500'000, 0);  // before the file's time begins
    w.close({{{0, 5'000'999}, std::string(70'000, 'c')}, {{1, 77}, "of no frame"}}, "about");
    w.observe(0, *frame_of(pool, 63, 4), 9'000'000, 0);  // too late
  }
  capture_reader r(path);
  captured_frame f;
  const std::uint64_t start = 1'700'000'000'000'000'000;
  for (const auto& [length, ns, interface] :
       {std::tuple{62u, start, 1u}, {61u, start + 3'000, 1u}, {60u, start + 4'000, 0u}}) {
    ASSERT_EQ(r.next(f), capture_reader::result::frame) << r.reason();
    EXPECT_EQ(f.length, length);
    EXPECT_EQ(f.time_ns, ns);
    EXPECT_EQ(f.interface, interface);
  }
  EXPECT_EQ(r.next(f), capture_reader::result::end);
  EXPECT_NE(content(path).find("about"), std::string::npos);
  EXPECT_EQ(content(path).find("of no frame"), std::string::npos);
}

TEST(capture, a_pcapng_file_is_kept_and_a_full_device_is_an_error) {
  const std::string path = temporary("keep.pcapng");
  put(path, "precious");
  EXPECT_THROW(pcapng_writer(path, {}), capture_error);
  EXPECT_EQ(content(path), "precious");
  pcapng_writer::config over;
  over.capture.overwrite = true;
  pcapng_writer w("/dev/full", over);
  payload::frame_pool pool;
  w.observe(0, *frame_of(pool, 1500, 1), 0, 0);
  EXPECT_THROW(w.close({}, ""), capture_error);
}

}  // namespace
}  // namespace rnic::tlm::test
