// SPDX-License-Identifier: Apache-2.0
// Every packet of the captures in traces/: decoded, built again to the same bytes, ICRC recomputed by ISA-L and zlib.
#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <map>

#include "model/wire/bytes.h"
#include "model/wire/icrc.h"
#include "testbenches/source_tree.h"
#include "testbenches/unit/wire/oracle.h"

namespace rnic::wire::test {
namespace {

struct file_case {
  const char* name;
  unsigned frames;
  std::map<unsigned, unsigned> packets;  // opcode -> number, from the capture's provenance
};

std::vector<bytes> read_all(const std::string& name) {
  char why[PCAP_ERRBUF_SIZE] = "";
  pcap_t* file = pcap_open_offline(rnic::in_source_tree("traces/" + std::string(name)).c_str(), why);
  EXPECT_NE(file, nullptr) << why;
  std::vector<bytes> all;
  if (file == nullptr) return all;
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (pcap_next_ex(file, &header, &data) == 1) all.emplace_back(data, data + header->caplen);
  pcap_close(file);
  return all;
}

class wire_captures : public testing::TestWithParam<file_case> {};

TEST_P(wire_captures, decode_build_icrc) {
  std::map<unsigned, unsigned> found;
  const std::vector<bytes> frames = read_all(GetParam().name);
  EXPECT_EQ(frames.size(), GetParam().frames);
  for (const bytes& frame : frames) {
    packet p;
    const decode_error e = decode(frame.data(), frame.size(), p);
    if (e == decode_error::not_roce) continue;
    ASSERT_EQ(e, decode_error::none) << to_string(e);
    ++found[p.bth.opcode];
    ASSERT_EQ(icrc(frame.data(), p), p.icrc);
    ASSERT_EQ(zlib_icrc(frame, p.icrc_offset), p.icrc);
    bytes again = rebuild(p, frame);
    store_le32(again.data() + p.icrc_offset, icrc(again.data(), p));
    ASSERT_EQ(again, bytes(frame.begin(), frame.begin() + p.icrc_offset + 4));
  }
  EXPECT_EQ(found, GetParam().packets);
}

INSTANTIATE_TEST_SUITE_P(
    traces, wire_captures,
    testing::Values(
        file_case{"cm_rping_800B.pcap", 55, {{4, 16}, {10, 4}, {12, 4}, {16, 4}, {17, 20}, {0x64, 5}}},
        file_case{"rc_atomic_fetchadd.pcap", 30, {{18, 15}, {20, 15}}},
        file_case{"rc_read_mtu1024_6000B.pcap", 86, {{12, 12}, {13, 12}, {14, 48}, {15, 12}}},
        file_case{"rc_send_ipv6_mtu256_1500B.pcap", 140, {{0, 20}, {1, 80}, {2, 20}, {17, 20}}},
        file_case{"rc_send_loss2pct_mtu1024_8000B.pcap", 527, {{0, 54}, {1, 338}, {2, 58}, {17, 77}}},
        file_case{"rc_send_loss2pct_mtu1024_8000B.rx.pcap", 519, {{0, 53}, {1, 333}, {2, 57}, {17, 76}}},
        file_case{"rc_send_mtu1024_4096B.pcap", 120, {{0, 24}, {1, 48}, {2, 24}, {17, 24}}},
        file_case{"rc_write_mtu1024_20000B.pcap", 168, {{6, 8}, {7, 144}, {8, 8}, {17, 8}}},
        file_case{"uc_send_mtu512_2000B.pcap", 120, {{0x20, 30}, {0x21, 60}, {0x22, 30}}},
        file_case{"ud_send_1000B.pcap", 30, {{0x64, 30}}},
        file_case{"errors/rc_rnr_mtu512.pcap",
                  90,
                  {{0, 8}, {1, 4}, {2, 8}, {4, 17}, {6, 2}, {9, 4}, {12, 4}, {13, 1}, {14, 1}, {15, 1}, {17, 39}}},
        file_case{"errors/rc_access_errors.pcap",
                  35,
                  {{6, 1}, {8, 1}, {10, 4}, {12, 6}, {13, 4}, {14, 4}, {15, 4}, {17, 9}, {20, 2}}},
        file_case{"errors/rc_invalid_requests.pcap", 17, {{0, 1}, {1, 1}, {2, 1}, {4, 5}, {10, 1}, {17, 7}}},
        file_case{"errors/rc_window_rebound.pcap",
                  34,
                  {{6, 3}, {7, 1}, {8, 3}, {10, 2}, {12, 4}, {13, 3}, {14, 1}, {15, 3}, {16, 1}, {17, 9}, {23, 4}}},
        file_case{"external/cnp_connectx4lx_scapy.pcap", 1, {{0x81, 1}}},
        file_case{"external/uc_send_only_connectx_scapy.pcap", 1, {{0x24, 1}}}),
    [](const auto& param) {
      std::string name = param.param.name;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

}  // namespace
}  // namespace rnic::wire::test
