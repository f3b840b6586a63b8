// SPDX-License-Identifier: Apache-2.0
// Send requests of special queue pairs: the datagram of a real host, given to the requester as a driver would.
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <cstring>

#include "model/transport/transport_cr.h"
#include "model/wire/bytes.h"
#include "model/wire/icrc.h"
#include "testbenches/block/requester/bench.h"
#include "testbenches/source_tree.h"

namespace {

using bench::setup;

/// The REQ of a Linux host, from DMAC to ICRC.
std::vector<std::uint8_t> captured() {
  char why[PCAP_ERRBUF_SIZE] = "";
  pcap_t* file = pcap_open_offline(rnic::in_source_tree("traces/cm_rping_800B.pcap").c_str(), why);
  EXPECT_NE(file, nullptr) << why;
  std::vector<std::uint8_t> frame;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (file != nullptr && pcap_next_ex(file, &header, &data) == 1 && frame.empty())
    if (header->caplen == 322) frame.assign(data, data + header->caplen);
  if (file != nullptr) pcap_close(file);
  return frame;
}

constexpr std::uint32_t inline_flag = 0x80000000, headers = 62, mad = 256;

struct special : bench::bench {
  explicit special(const setup& s) : bench(s), frame(captured()) {}
  /// The capture's headers inline, its payload in host memory, and room for the ICRC.
  std::vector<std::uint32_t> request(std::uint32_t flags = 0x0c) {
    std::copy_n(frame.data() + headers, mad, w.memory.begin() + ::bench::data);
    std::vector<std::uint32_t> words{0x0a, 5u << 29 | 8, flags, 0, inline_flag | 44};
    for (unsigned i = 0; i < 44; i += 4) words.push_back(rnic::wire::load_be32(frame.data() + i));
    words.push_back(inline_flag | 18);
    std::uint8_t rest[20] = {};
    std::copy_n(frame.data() + 44, 18, rest);
    for (unsigned i = 0; i < 20; i += 4) words.push_back(rnic::wire::load_be32(rest + i));
    words.resize(24);
    words.insert(words.end(), {mad, ::bench::good_key, 0, static_cast<std::uint32_t>(::bench::data)});
    words.insert(words.end(), {inline_flag | 4, 0x11223344, 0, 0});
    return words;
  }
  void go(std::vector<std::uint32_t> words) {
    post(std::move(words));
    ring_doorbell();
    run_ns(20'000);
  }
  std::uint8_t syndrome() const { return w.cqes.empty() ? 0xff : w.cqes[0].second.syndrome; }
  std::vector<std::uint8_t> frame;
};

setup of(bool v2) {
  setup s;
  s.type = rnic::icm::service::mlx;
  s.v2 = v2;
  s.mtu_code = 1;  // the path MTU is not for these
  return s;
}

TEST(requester_special, the_frame_is_what_software_wrote_with_the_icrc_to_come) {
  special b(of(true));
  b.go(b.request());
  ASSERT_EQ(b.w.sent.size(), 1u);
  rnic::payload::frame& f = *b.w.sent[0].second;
  ASSERT_EQ(f.length, b.frame.size());
  EXPECT_EQ(std::memcmp(f.data(), b.frame.data(), f.length - 4), 0);
  EXPECT_TRUE(f.insert_icrc);
  EXPECT_EQ(f.priority, 5);
  // What the icrc block makes of it is what Linux made of it.
  EXPECT_EQ(rnic::wire::icrc(f.data(), f.packet), rnic::wire::load_le32(b.frame.data() + f.packet.icrc_offset));
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.syndrome(), 0);
}

TEST(requester_special, an_icrc_of_softwares_own_is_left_alone) {
  special b(of(true));
  b.go(b.request(0x1c));
  ASSERT_EQ(b.w.sent.size(), 1u);
  const rnic::payload::frame& f = *b.w.sent[0].second;
  EXPECT_FALSE(f.insert_icrc);
  EXPECT_EQ(rnic::wire::load_be32(f.data() + f.length - 4), 0x11223344u);
}

TEST(requester_special, loopback_when_asked_for) {
  special b(of(true));
  b.go(b.request(0x0d));
  ASSERT_EQ(b.w.sent.size(), 1u);
  EXPECT_EQ(b.w.sent[0].second->loopback, rnic::payload::frame::loopback_only);
}

/// A request that ends in this syndrome and sends nothing.
void expect_refused(special& b, std::vector<std::uint32_t> words, std::uint8_t syndrome) {
  b.go(std::move(words));
  EXPECT_TRUE(b.w.sent.empty());
  ASSERT_EQ(b.w.cqes.size(), 1u);
  EXPECT_EQ(b.syndrome(), syndrome);
  EXPECT_EQ(b.stored(::bench::qpn).state, rnic::icm::qp_state::rts);  // as it was in host memory
}

TEST(requester_special, headers_of_the_other_version) {
  special b(of(false));
  b.dut.cr_write(rnic::transport::cr::special_qp_base, ::bench::qpn - 2);
  expect_refused(b, b.request(), 2);
}

TEST(requester_special, a_length_that_is_not_the_frames) {
  special b(of(true));
  auto words = b.request();
  words[24] = mad - 4;
  expect_refused(b, words, 2);
}

TEST(requester_special, headers_in_host_memory) {
  special b(of(true));
  std::copy_n(b.frame.data(), b.frame.size(), b.w.memory.begin() + ::bench::data);
  expect_refused(b, {0x0a, 2, 0xc, 0, static_cast<std::uint32_t>(b.frame.size()), ::bench::good_key, 0, ::bench::data},
                 2);
}

TEST(requester_special, payload_that_is_not_ours_to_read) {
  special b(of(true));
  auto words = b.request();
  words[25] = ::bench::bad_key;
  expect_refused(b, words, 4);
}

TEST(requester_special, a_frame_of_no_size) {
  special b(of(true));
  expect_refused(b, {0x0a, 2, 0xc, 0, 0, ::bench::good_key, 0, ::bench::data}, 2);
}

TEST(requester_special, a_frame_too_long) {
  special b(of(true));
  expect_refused(b, {0x0a, 2, 0xc, 0, 5000, ::bench::good_key, 0, ::bench::data}, 1);
}

TEST(requester_special, other_operations) {
  special b(of(true));
  auto words = b.request();
  words[0] = 0x0b;  // with immediate data: that would be in the headers
  expect_refused(b, words, 2);
}

TEST(requester_special, subnet_management_does_not_travel_on_ethernet) {
  special b(of(false));
  b.dut.cr_write(rnic::transport::cr::special_qp_base, ::bench::qpn);
  expect_refused(b, b.request(), 2);
}

TEST(requester_special, raw_queue_pairs_are_not_special) {
  special b(of(false));
  b.go(b.request());
  EXPECT_TRUE(b.w.sent.empty());
}

TEST(requester_special, sleeping_changes_nothing) {
  setup always = of(true);
  always.time.always_tick = true;
  special asleep(of(true)), awake(always);
  for (special* b : {&asleep, &awake}) {
    for (int i = 0; i < 4; ++i) b->post(b->request());
    b->ring_doorbell();
  }
  asleep.run_ns(20'000);  // both are in the same kernel
  const auto seen = [](const special& b) {
    std::vector<std::uint64_t> cycles;
    for (const auto& [at, f] : b.w.sent) cycles.push_back(at);
    for (const auto& [at, c] : b.w.cqes) cycles.push_back(at);
    return cycles;
  };
  EXPECT_EQ(seen(asleep).size(), 8u);
  EXPECT_EQ(seen(asleep), seen(awake));
}

}  // namespace
