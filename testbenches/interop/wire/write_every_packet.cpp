// SPDX-License-Identifier: Apache-2.0
// Writes one packet of every opcode x encapsulation x VLAN x pad to a capture, and what each was meant to be to a
// table.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <string>

#include "model/wire/bytes.h"
#include "model/wire/icrc.h"
#include "testbenches/unit/wire/every_packet.h"
#include "tlm/capture.h"

namespace {

using namespace rnic;

payload::frame_ptr frame_of(payload::frame_pool& pool, wire::packet& p) {
  payload::frame_ptr f = pool.get();
  std::uint8_t* payload = f->buffer.data() + 256;
  for (std::uint32_t i = 0; i < p.payload_length; ++i)
    payload[i] = p.bth.opcode == wire::opcode_cnp ? std::uint8_t{0} : static_cast<std::uint8_t>(0xa0 + i);
  std::uint8_t* first = wire::build(p, payload);
  wire::store_le32(first + p.icrc_offset, wire::icrc(first, p));
  p.icrc = wire::load_le32(first + p.icrc_offset);
  f->begin = static_cast<std::uint32_t>(first - f->buffer.data());
  f->length = p.icrc_offset + 4;
  return f;
}

/// One line of name=value; what the packet does not have is left out.
void describe(std::ostream& out, const wire::packet& p) {
  const wire::opcode_traits& t = wire::traits(p.bth.opcode);
  static const char* const encaps[] = {"v1", "ipv4", "ipv6"};
  out << "encap=" << encaps[static_cast<int>(p.encap)] << " vlan=" << (p.vlan_present ? int{p.vlan_tci} : -1)
      << " src=" << wire::to_string(p.sgid) << " dst=" << wire::to_string(p.dgid) << " tclass=" << int{p.traffic_class}
      << " flow=" << p.flow_label << " hop=" << int{p.hop_limit} << " id=" << p.ipv4_id << " sport=" << p.udp_source
      << " opcode=" << int{p.bth.opcode} << " se=" << p.bth.solicited << " m=" << p.bth.migration
      << " pad=" << int{p.bth.pad} << " pkey=" << p.bth.pkey << " qp=" << p.bth.dest_qp << " a=" << p.bth.ack_request
      << " psn=" << p.bth.psn.value() << " becn=" << p.bth.becn << " payload=" << p.payload_length;
  if (t.rdeth) out << " rdeth=" << p.rdeth;
  if (t.xrceth) out << " xrceth=" << p.xrceth;
  if (t.deth) out << " qkey=" << p.deth.qkey << " srcqp=" << p.deth.src_qp;
  if (t.reth) out << " reth_va=" << p.reth.va << " reth_key=" << p.reth.rkey << " reth_len=" << p.reth.length;
  if (t.atomic_eth)
    out << " at_va=" << p.atomic.va << " at_key=" << p.atomic.rkey << " swap=" << p.atomic.swap_add
        << " cmp=" << p.atomic.compare;
  if (t.aeth) out << " syndrome=" << int{p.aeth.syndrome} << " msn=" << p.aeth.msn;
  if (t.atomic_ack_eth) out << " original=" << p.atomic_original;
  if (t.immediate) out << " imm=" << p.immediate;
  if (t.ieth) out << " ieth=" << p.invalidate_rkey;
  out << " icrc=" << p.icrc << '\n';
}

}  // namespace

extern "C" int sc_main(int argc, char* argv[]);

int sc_main(int argc, char* argv[]) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: write_every_packet CAPTURE TABLE\n");
    return 2;
  }
  try {
    payload::frame_pool pool;
    tlm::capture_writer capture(argv[1]);
    std::ofstream table(argv[2]);
    sim::time_ps at = 0;
    wire::test::for_every_packet([&](const wire::packet& headers) {
      // Nobody else knows the manufacturer's range.
      if (wire::transport_of(headers.bth.opcode) == wire::transport::manufacturer) return;
      wire::packet p = headers;
      const payload::frame_ptr f = frame_of(pool, p);
      f->fcs = wire::ethernet_fcs(f->data(), f->length);
      capture.observe(0, *f, at, at);
      at += sim::ps_per_us;
      describe(table, p);
    });
    capture.close();
    return table.good() ? 0 : 1;
  } catch (const tlm::capture_error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
