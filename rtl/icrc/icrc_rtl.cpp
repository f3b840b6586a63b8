// SPDX-License-Identifier: Apache-2.0
#include "rtl/icrc/icrc_rtl.h"

#include <iomanip>
#include <sstream>

#include "model/icrc/icrc_if.h"

namespace rnic::rtl {

icrc::icrc_engine_if::result icrc_rtl::process(wire::encapsulation encap, const std::uint8_t* l3, std::size_t length) {
  result r;
  std::size_t offered = 0;
  for (;; ++r.cycles) {
    const icrc::icrc_beat beat =
        offered < length ? icrc::beat_at(encap, l3, length, offered, beat_bytes_) : icrc::icrc_beat{};
    const icrc::icrc_outputs out = step(beat, true);
    if (beat.valid && out.in_ready) offered += beat.keep;
    if (out.result_valid) {
      r.crc = out.crc;
      return r;
    }
  }
}

void icrc_pins::tracker::note(const inputs& i, const outputs& o) {
  if (i.reset) return open_.clear();
  if (o.result_valid && i.result_ready && !open_.empty()) open_.pop_front();
  if (!i.in.valid || !o.in_ready) return;
  if (i.in.first) {
    open_.push_back({});
    open_.back().number = ++packets_;
    open_.back().encap = i.in.encap;
  }
  if (open_.empty()) return;
  packet& p = open_.back();
  if (p.length < p.bytes.size()) std::copy_n(i.in.data.begin(), i.in.keep, p.bytes.data() + p.length);
  p.length += i.in.keep;
}

std::string icrc_pins::tracker::text() const {
  if (open_.empty()) return "no packet is in the engine";
  const packet& p = open_.front();
  const bool v1 = p.encap == wire::encapsulation::roce_v1, ipv4 = p.encap == wire::encapsulation::roce_v2_ipv4;
  const std::size_t bth = v1 ? 40 : ipv4 ? 28 : 48;
  const auto word = [&p](std::size_t at) {
    return unsigned{p.bytes[at]} << 16 | unsigned{p.bytes[at + 1]} << 8 | p.bytes[at + 2];
  };
  constexpr std::uint8_t next_header_ib = 0x1b;  // IBA A16: of the GRH of RoCE v1
  const bool plain = v1 && p.length > 6 && p.bytes[6] != next_header_ib;
  std::ostringstream text;
  text << "packet " << p.number << " of this engine, "
       << (plain  ? "no RoCE"
           : v1   ? "RoCE v1"
           : ipv4 ? "RoCE v2 over IPv4"
                  : "RoCE v2 over IPv6")
       << ", " << p.length << " bytes so far";
  if (!plain && p.length >= bth + 12)
    text << ", opcode 0x" << std::hex << unsigned{p.bytes[bth]} << ", queue pair 0x" << word(bth + 5) << ", PSN 0x"
         << word(bth + 9);
  return text.str();
}

}  // namespace rnic::rtl
