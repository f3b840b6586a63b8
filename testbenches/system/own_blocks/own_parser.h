// SPDX-License-Identifier: Apache-2.0
// A receive parser by its data sheet.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "model/adapter/block_place.h"
#include "model/gid/gid_match_if.h"
#include "model/parser/parser.h"
#include "model/payload/frame_stream.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/wire/bytes.h"

namespace rnic::system_test {

/// Each frame stays in its list until its time has come; what it is was decided when it was taken.
class own_parser final : public sim::clocked_block {
 public:
  explicit own_parser(adapter::block_place& place)
      : clocked_block(place.name() + ".own", place.clock()),
        name_(place.name()),
        config_(place.parameters().parser),
        spans_(place.around().spans),
        roce_v2_port_(place.beside().responder.roce_v2_port),
        match_{place.beside().match, place.beside().other_match},
        tables_{place.beside().gids[place.beside().port], place.beside().gids[1 - place.beside().port]} {
    const std::string port = std::to_string(place.beside().port + 1), own = "parser" + port;
    place.bind("port" + port + "_to_" + own + "_frames", from_port_);
    place.bind(own + "_to_icrc_check_frames", to_[roce]);
    place.bind(own + "_to_steering_frames", to_[plain]);
    place.bind(own + "_to_port" + port + "_departures", gone_);
    sim::statistics& all = place.around().statistics;
    all.add(name_ + ".roce_frames", frames_[roce]);
    all.add(name_ + ".ethernet_frames", frames_[plain]);
    all.add(name_ + ".unclaimed_frames", unclaimed_);
    all.add(name_ + ".gid_match.look_ups", look_ups_);
    all.add(name_ + ".gid_match.hits", hits_);
    for (unsigned i = 0; i < drops_.size(); ++i)
      all.add(name_ + ".drop." + to_string(static_cast<parser::drop>(i)), drops_[i]);
  }

 private:
  enum way : unsigned { roce, plain, nowhere };
  struct inside {
    payload::frame_ptr frame;
    way to = nowhere;
    sim::cycle_t due = 0;
  };

  void tick() override {
    give();
    if (from_port_.can_pop() && now() >= taken_to_ && list_.size() < places()) take();
    if (!list_.empty() || from_port_.can_pop()) wake_next();
  }

  std::size_t places() const { return config_.parser_cycles + match_[0]->pass_cycles() + 1; }
  sim::cycle_t beats(const payload::frame& f) const { return payload::beats_of(f.length, config_.bytes_per_cycle); }

  void give() {
    if (list_.empty() || now() < list_.front().due || now() < given_to_) return;
    inside& first = list_.front();
    if (!to_[first.to].claim()) return;
    given_to_ = now() + beats(*first.frame);
    spans_.leave(first.frame->span, name_, "gid match", now_ps());
    payload::stream_out(to_[first.to], std::move(first.frame), now(), 0, config_.bytes_per_cycle);
    list_.pop_front();
  }

  void take() {
    payload::frame_ptr f = from_port_.pop();
    taken_to_ = now() + beats(*f);
    gid::gid_match_if::result found;
    bool searched = false;
    const way to = sort(*f, found, searched);
    const std::uint32_t headers =
        to == roce ? std::min<std::uint32_t>(f->length, f->packet.payload_offset) : std::min(f->length, 66u);
    const sim::cycle_t parsed =
        std::max(now(), payload::byte_at(*f, std::max(headers, 1u) - 1, config_.bytes_per_cycle)) +
        config_.parser_cycles;
    spans_.leave_at_edge(f->span, name_, "parser", domain(), parsed);
    sim::cycle_t matched = parsed + match_[0]->pass_cycles();
    if (searched) {
      const sim::cycle_t begins = std::max(parsed, match_free_);
      match_free_ = begins + found.interval;
      matched = begins + found.cycles;
      ++look_ups_;
      if (found.index) ++hits_;
    }
    if (to == nowhere) {
      gone_.push({now(), f->length, f->priority});
      return;
    }
    const sim::cycle_t due = std::max(matched, behind_);
    behind_ = due + beats(*f);
    list_.push_back({std::move(f), to, due});
  }

  way sort(payload::frame& f, gid::gid_match_if::result& found, bool& searched) {
    using parser::drop;
    if (f.length < 14) return end(f.fcs_ok ? drop::truncated : drop::bad_fcs);
    if (!f.fcs_ok) return count(plain);
    wire::packet& p = f.packet;
    const wire::decode_error e = wire::decode(f.data(), f.length, p, roce_v2_port_);
    if (e == wire::decode_error::not_roce) return count(plain);
    const bool first = wire::load_be16(f.data() + p.l3_offset - 2) == static_cast<unsigned>(wire::ether_type::roce_v1);
    if (!first && (!config_.roce_v2 || !tables_[0]->takes_roce_v2())) return count(plain);
    if (!tables_[0]->accepts(p.dmac)) return foreign();
    if (e != wire::decode_error::none) return end(why(e));
    if (!is_group(p.dgid)) {
      if (p.dmac[0] & 1) return foreign();
      searched = true;
      const gid::roce_type type = p.encap == wire::encapsulation::roce_v1 ? gid::roce_type::v1 : gid::roce_type::v2;
      found = match_[0]->look_up(p.dgid, type);
      const bool other = !found.index && tables_[0]->takes_both_tables() && match_[1] != nullptr;
      if (other) {
        const gid::gid_match_if::result second = match_[1]->look_up(p.dgid, type);
        found = {second.index, found.cycles + second.cycles, found.interval + second.interval};
        ++look_ups_;
      }
      if (!found.index) return foreign();
      const gid::gid_table& table = *tables_[other ? 1 : 0];
      const gid::entry& entry = table[*found.index];
      f.gid_index = static_cast<std::uint16_t>(*found.index + (other ? gid::table_size : 0));
      if (entry.vlan_valid && (p.vlan_present ? p.vlan_tci & 0xfff : 0) != entry.vlan) return end(drop::wrong_vlan);
      if (table.num_vfs() != 0) f.function = entry.function;
    }
    if (p.bth.version != 0) return end(drop::bad_version);
    return count(roce);
  }

  static bool is_group(const wire::gid& g) {
    const std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return g[0] == 0xff || (std::equal(mapped.begin(), mapped.end(), g.begin()) && g[12] >= 224 && g[12] < 240);
  }
  /// Both lists are in the order of the tests.
  static parser::drop why(wire::decode_error e) {
    using parser::drop;
    using error = wire::decode_error;
    const std::pair<error, drop> all[] = {
        {error::bad_ip_version, drop::bad_ip_version},   {error::bad_ip_header_length, drop::bad_ip_header_length},
        {error::bad_ip_checksum, drop::bad_ip_checksum}, {error::fragment, drop::fragment},
        {error::bad_length, drop::bad_length},           {error::bad_next_header, drop::bad_next_header},
        {error::unknown_opcode, drop::unknown_opcode},   {error::bad_pad, drop::bad_pad}};
    for (const auto& [found, counted] : all)
      if (found == e) return counted;
    return drop::truncated;
  }
  way count(way to) {
    ++frames_[to];
    return to;
  }
  way foreign() {
    ++unclaimed_;
    return count(plain);
  }
  way end(parser::drop why) {
    ++drops_[static_cast<unsigned>(why)];
    return nowhere;
  }

  const std::string name_;
  const parser::parser::config config_;
  sim::span_recorder& spans_;
  const std::uint16_t& roce_v2_port_;
  const std::array<gid::gid_match_if*, 2> match_;
  const std::array<const gid::gid_table*, 2> tables_;
  sim::fifo_in<payload::frame_ptr> from_port_{*this};
  std::array<sim::fifo_out<payload::frame_ptr>, 2> to_{sim::fifo_out<payload::frame_ptr>(*this),
                                                       sim::fifo_out<payload::frame_ptr>(*this)};
  sim::fifo_out<payload::departure> gone_{*this};
  std::deque<inside> list_;
  sim::cycle_t taken_to_ = 0, match_free_ = 0, behind_ = 0, given_to_ = 0;
  std::array<std::uint64_t, 2> frames_{};
  std::uint64_t unclaimed_ = 0, look_ups_ = 0, hits_ = 0;
  std::array<std::uint64_t, static_cast<unsigned>(parser::drop::count)> drops_{};
};

}  // namespace rnic::system_test
