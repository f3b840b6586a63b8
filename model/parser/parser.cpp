// SPDX-License-Identifier: Apache-2.0
// Receive parser of one port.
#include "model/parser/parser.h"

#include <algorithm>

#include "model/sim/seldom.h"
#include "model/wire/bytes.h"
#include "model/wire/ethernet.h"

namespace rnic::parser {
namespace {

drop reason_of(wire::decode_error e) {
  switch (e) {
    case wire::decode_error::bad_ip_version:
      return drop::bad_ip_version;
    case wire::decode_error::bad_ip_header_length:
      return drop::bad_ip_header_length;
    case wire::decode_error::bad_ip_checksum:
      return drop::bad_ip_checksum;
    case wire::decode_error::fragment:
      return drop::fragment;
    case wire::decode_error::bad_length:
      return drop::bad_length;
    case wire::decode_error::bad_next_header:
      return drop::bad_next_header;
    case wire::decode_error::unknown_opcode:
      return drop::unknown_opcode;
    case wire::decode_error::bad_pad:
      return drop::bad_pad;
    default:
      return drop::truncated;
  }
}

/// So many bytes of a frame the parser has looked at: of RoCE to the end of its transport headers, of others to where
/// those of UDP over IPv6 behind a tag would end.
std::uint32_t header_bytes(const payload::frame& f, bool roce) {
  constexpr std::uint32_t to_udp = 14 + 4 + 40 + 8;
  return std::max(1u, std::min(f.length, roce ? std::uint32_t{f.packet.payload_offset} : to_udp));
}

/// Multicast GID: ff00::/8, or an IPv4 group address (224.0.0.0/4) mapped into IPv6.
bool multicast(const wire::gid& g) {
  if (g[0] == 0xff) return true;
  for (unsigned i = 0; i < 10; ++i)
    if (g[i] != 0) return false;
  return g[10] == 0xff && g[11] == 0xff && (g[12] & 0xf0) == 0xe0;
}

}  // namespace

const char* to_string(drop d) {
  switch (d) {
    case drop::bad_fcs:
      return "bad_fcs";
    case drop::truncated:
      return "truncated";
    case drop::bad_ip_version:
      return "bad_ip_version";
    case drop::bad_ip_header_length:
      return "bad_ip_header_length";
    case drop::bad_ip_checksum:
      return "bad_ip_checksum";
    case drop::fragment:
      return "fragment";
    case drop::bad_length:
      return "bad_length";
    case drop::bad_next_header:
      return "bad_next_header";
    case drop::unknown_opcode:
      return "unknown_opcode";
    case drop::bad_pad:
      return "bad_pad";
    case drop::bad_version:
      return "bad_version";
    case drop::not_our_mac:
      return "not_our_mac";
    case drop::not_our_gid:
      return "not_our_gid";
    case drop::wrong_vlan:
      return "wrong_vlan";
    case drop::ethernet_not_bound:
      return "ethernet_not_bound";
    case drop::count:
      break;
  }
  return "?";
}

parser::parser(std::string name, sim::clock_domain& domain, const config& cfg, const gid::gid_table& gids,
               gid::gid_match_if& match, const std::uint16_t& roce_v2_port, sim::span_recorder& spans,
               sim::statistics& stats)
    : clocked_block(name, domain),
      mac_in(*this),
      roce_out(*this),
      ethernet_out(*this),
      departures(*this),
      config_(sim::checked(cfg, this->name())),
      gids_(gids),
      roce_v2_port_(roce_v2_port),
      spans_(spans),
      match_(match),
      pipeline_(cfg.parser_cycles + match_.pass_cycles() + 1) {
  if (cfg.bytes_per_cycle == 0) throw sim::config_error(this->name() + ".bytes_per_cycle: must be 1 or more, not 0");
  stats.add(this->name() + ".roce_frames", roce_frames_);
  stats.add(this->name() + ".ethernet_frames", ethernet_frames_);
  stats.add(this->name() + ".unclaimed_frames", unclaimed_frames_);
  stats.add(this->name() + ".gid_match.look_ups", match_count_.look_ups);
  stats.add(this->name() + ".gid_match.hits", match_count_.hits);
  for (unsigned i = 0; i < drops_.size(); ++i)
    stats.add(this->name() + ".drop." + to_string(static_cast<drop>(i)), drops_[i]);
}

void parser::tick() {
  deliver();
  take();
}

void parser::deliver() {
  if (pipeline_.empty()) return;
  stage& s = pipeline_.front();
  const sim::cycle_t due = std::max(s.ready, blocked_to_);
  if (due > edge()) return wake_at(due);
  sim::fifo_out<payload::frame_ptr>& out = s.to == way::roce ? roce_out : ethernet_out;
  if (!out.claim()) return;
  spans_.leave(s.frame->span, name(), "gid match", now_ps());
  blocked_to_ = edge() + payload::beats_of(s.frame->length, config_.bytes_per_cycle);
  payload::stream_out(out, std::move(s.frame), edge(), 0, config_.bytes_per_cycle);
  pipeline_.drop();
  if (!pipeline_.empty()) wake_at(std::max(pipeline_.front().ready, blocked_to_));
}

void parser::take() {
  if (!mac_in.can_pop()) return;
  if (!input_.is_free()) return input_.await();
  if (pipeline_.full()) return input_.blocked(held_up_by());  // its head, or its channel, wakes us
  payload::frame_ptr f = mac_in.pop();
  const sim::cycle_t beats = payload::beats_of(f->length, config_.bytes_per_cycle);
  input_.start(beats);
  looked_up_.reset();
  const way to = classify(*f);
  const sim::cycle_t headers = payload::byte_at(*f, header_bytes(*f, to == way::roce) - 1, config_.bytes_per_cycle);
  const sim::cycle_t parsed = std::max(headers, edge()) + config_.parser_cycles;
  const sim::cycle_t matched = parsed + match_cycles(parsed);
  spans_.leave_at_edge(f->span, name(), "parser", domain(), parsed);
  if (to == way::nowhere) {
    end(*f);
  } else {
    const sim::cycle_t ready = std::max(matched, output_free_);  // none overtakes another, nor its last byte
    output_free_ = ready + beats;
    if (to == way::roce && pipeline_.empty() && ready >= blocked_to_ && roce_out.claim()) {
      spans_.leave_at_edge(f->span, name(), "gid match", domain(), ready);
      payload::stream_out(roce_out, std::move(f), edge(), ready - edge(), config_.bytes_per_cycle);
    } else {
      pipeline_.push({std::move(f), ready, to});
      wake_at(std::max(ready, blocked_to_));
    }
  }
  if (mac_in.can_pop()) wake_at(std::max(input_.free_at(), edge() + 1));
}

/// Of a pipeline that is full.
const char* parser::held_up_by() const {
  const stage& s = pipeline_.front();
  if (std::max(s.ready, blocked_to_) > edge()) return "pipeline";
  return s.to == way::roce ? "icrc check" : "steering";
}

/// It leaves the ingress buffer as it comes, and goes nowhere.
void parser::end(const payload::frame& f) {
  if (departures.bound()) departures.push({edge(), f.length, f.priority});
}

/// From the end of the parser's own stages to the end of the match, for the frame that classify() has just seen.
sim::cycle_t parser::match_cycles(sim::cycle_t parsed) {
  if (!looked_up_) return match_.pass_cycles();
  ++match_count_.look_ups;
  if (looked_up_->index) ++match_count_.hits;
  const sim::cycle_t waits = match_free_ > parsed ? match_free_ - parsed : 0;
  match_free_ = parsed + waits + looked_up_->interval;
  matching_.append(looked_up_->interval);
  return waits + looked_up_->cycles;
}

parser::way parser::discard(drop why) {
  ++drops_[static_cast<unsigned>(why)];
  return way::nowhere;
}

/// RoCE that no address of the port takes.
parser::way parser::unclaimed(drop why) {
  if (!ethernet_out.bound()) return discard(why);
  ++unclaimed_frames_;
  ++ethernet_frames_;
  return way::ethernet;
}

/// Which addresses it takes is its own business.
parser::way parser::plain_ethernet() {
  if (!ethernet_out.bound()) return discard(drop::ethernet_not_bound);
  ++ethernet_frames_;
  return way::ethernet;
}

/// The entry of the destination; `index` is left alone where there is none.
const gid::entry* parser::find(const wire::packet& p, std::uint16_t* index) {
  const gid::roce_type type = p.encap == wire::encapsulation::roce_v1 ? gid::roce_type::v1 : gid::roce_type::v2;
  table_.access_own(of_gid);
  looked_up_ = match_.look_up(p.dgid, type);
  if (looked_up_->index) {
    *index = static_cast<std::uint16_t>(*looked_up_->index);
    return &gids_[*index];
  }
  if (!gids_.takes_both_tables() || other_match_ == nullptr) return nullptr;
  const gid::gid_match_if::result own = *looked_up_;
  table_.access_own(of_other_gid);
  looked_up_ = other_match_->look_up(p.dgid, type);
  looked_up_->cycles += own.cycles;
  looked_up_->interval += own.interval;
  ++match_count_.look_ups;
  if (!looked_up_->index) return nullptr;
  *index = static_cast<std::uint16_t>(gid::table_size + *looked_up_->index);
  return &(*other_)[*looked_up_->index];
}

parser::way parser::classify(payload::frame& f) {
  if (sim::seldom(!f.fcs_ok)) {
    if (!ethernet_out.bound() || f.length < 14) return discard(drop::bad_fcs);
    ++ethernet_frames_;
    return way::ethernet;
  }
  if (sim::seldom(f.length < 14)) return discard(drop::truncated);
  wire::packet& p = f.packet;
  const wire::decode_error e = wire::decode(f.data(), f.length, p, roce_v2_port_);
  if (e == wire::decode_error::not_roce) return plain_ethernet();
  const auto type = static_cast<wire::ether_type>(wire::load_be16(f.data() + p.l3_offset - 2));
  if (!(config_.roce_v2 && gids_.takes_roce_v2()) && type != wire::ether_type::roce_v1) return plain_ethernet();
  table_.access_own(of_mac);
  if (!gids_.accepts(p.dmac)) return unclaimed(drop::not_our_mac);
  if (e != wire::decode_error::none) return discard(reason_of(e));
  if (!multicast(p.dgid)) {
    if (wire::is_multicast(p.dmac)) return unclaimed(drop::not_our_mac);  // the ICRC does not cover it
    const gid::entry* const own = find(p, &f.gid_index);
    if (own == nullptr) return unclaimed(drop::not_our_gid);
    const std::uint16_t vid = p.vlan_present ? p.vlan_tci & 0xfff : 0;
    if (own->vlan_valid && vid != own->vlan) return discard(drop::wrong_vlan);
    const gid::gid_table& its = f.gid_index < gid::table_size ? gids_ : *other_;
    if (its.num_vfs() != 0) f.function = own->function;
  }
  if (p.bth.version != 0) return discard(drop::bad_version);
  ++roce_frames_;
  return way::roce;
}

}  // namespace rnic::parser
