// SPDX-License-Identifier: Apache-2.0
// An answer transmit by somebody who has read the data sheet of the model's, and nothing else of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <utility>

#include "model/adapter/block_place.h"
#include "model/transport/congestion/ecn.h"
#include "model/transport/responder/answer_transmit.h"
#include "model/transport/udp_source.h"

namespace rnic::system_test {

/// A queue a port and priority, which is looked at in each cycle. The counters of look-ups are the model's part's own.
class own_answers final : public sim::clocked_block,
                          public register_bus::cr_target_if,
                          public register_bus::reset_target_if {
 public:
  explicit own_answers(adapter::block_place& place)
      : clocked_block(place.name() + ".own", place.clock()),
        config_(place.parameters().responder),
        beside_(place.beside()) {
    const std::string users[] = {"read_generator", "responder", "cnp_sender"};
    const std::string what[] = {"responses", "acknowledgements", "notifications"};
    sim::statistics& stats = place.around().statistics;
    for (unsigned u = 0; u < 3; ++u) {
      place.bind(users[u] + "_to_answer_transmit_" + what[u], jobs_[u]);
      place.bind("answer_transmit_to_" + users[u] + "_" + what[u] + "_room", room_[u]);
      stats.add(place.name() + "." + what[u], accepted_[u]);
    }
    for (unsigned p = 0; p < 2; ++p) {
      const std::string name = "port" + std::to_string(p + 1) + "_to_answer_transmit_credits";
      if (place.has(name)) place.bind(name, credit_in_[p]);
      credits_[p].fill(config_.egress_frames);
    }
    place.bind("answer_transmit_to_icrc_insert_frames", frames_);
    stats.add(place.name() + ".sourceless", sourceless_);
    stats.add(place.name() + ".credit_wait_cycles", credit_wait_cycles_);
    stats.add(place.name() + ".source_gid.look_ups", look_ups_);
  }

  std::uint32_t cr_read(std::uint32_t offset) override { return offset == transport::cr::port_map ? map_.value() : 0; }
  void cr_write(std::uint32_t offset, std::uint32_t value) override {
    if (offset == transport::cr::port_map && map_.write(value)) wake_next();
  }
  void device_reset() override { cr_write(transport::cr::port_map, transport::cr::port_map_identity); }

 private:
  static constexpr unsigned lines = 16, priorities = 8;
  struct waiting {
    transport::answer_job job;
    unsigned user = 0;
  };

  void tick() override {
    for (auto& in : credit_in_)
      if (in.can_pop()) ++credits_[static_cast<std::size_t>(&in - credit_in_.data())][in.pop().priority & 7];
    if (!refused_.empty() && refused_.front().first == now()) {
      ++*refused_.front().second;
      refused_.pop_front();
      ++sourceless_;
    }
    for (unsigned u = 0; u < 3; ++u) {
      if (!jobs_[u].can_pop()) continue;
      transport::answer_job j = jobs_[u].pop();
      ++accepted_[u];
      auto& queue = queues_[j.port * priorities + j.priority];
      queue.push_back({std::move(j), u});
    }
    bool busy = !refused_.empty();
    for (unsigned l = 0; l < lines; ++l) {
      if (queues_[l].empty()) continue;
      busy = true;
      if (credit_of(l) == 0) ++credit_wait_cycles_;
    }
    leave();
    if (busy) wake_next();
  }

  unsigned& credit_of(unsigned l) { return credits_[map_.port_of(l / priorities)][l % priorities]; }

  void leave() {
    if (!frames_.can_push()) return;
    for (unsigned i = 0; i < lines; ++i) {
      const unsigned l = (turn_ + i) % lines;
      const gid::source_access& access = beside_.sources;
      const unsigned table = map_.tables_of(l / priorities);
      if (queues_[l].empty() || credit_of(l) == 0 || (access.shared && (now() + table + access.turn) % 2 != 0))
        continue;
      turn_ = l + 1;
      waiting w = std::move(queues_[l].front());
      queues_[l].pop_front();
      room_[w.user].push({w.job.port, w.job.priority});
      --credit_of(l);
      ++look_ups_;
      gid::gid_source_if& tables = *access.by_port[table];
      const gid::source from_here = tables.look_up(request(w.job));
      if (from_here.why != gid::refusal::none) {
        refused_.emplace_back(now() + tables.cycles(), &credit_of(l));
        return;
      }
      payload::frame& f = *w.job.frame;
      if (!w.job.complete) {
        write(w.job, from_here);
        beside_.sent.add(w.job.path.counter_index, f.length);
      }
      f.port = static_cast<std::uint8_t>(map_.port_of(l / priorities));
      if (from_here.own_destination) f.loopback = payload::frame::loopback_only;
      frames_.push_after(std::move(w.job.frame), tables.cycles() + config_.answer.cycles());
      return;
    }
  }

  static gid::source_request request(const transport::answer_job& j) {
    gid::source_request r;
    if (j.complete) {
      r.dmac = j.frame->packet.dmac;
      return r;
    }
    r.checked = true;
    r.type = (j.path.flags & icm::path_flag_roce_v2) != 0 ? gid::roce_type::v2 : gid::roce_type::v1;
    r.ipv4 = gid::is_mapped_ipv4(j.path.remote_gid);
    r.tagged = (j.path.flags & icm::path_flag_vlan) != 0;
    r.index = j.path.gid_index;
    r.mac_index = j.path.smac_index;
    r.vlan_index = j.path.vlan_index;
    r.function = j.function;
    std::copy_n(j.path.dmac, r.dmac.size(), r.dmac.begin());
    return r;
  }

  void write(const transport::answer_job& j, const gid::source& from_here) {
    payload::frame& f = *j.frame;
    wire::packet& p = f.packet;
    const icm::path& to = j.path;
    const bool v2 = (to.flags & icm::path_flag_roce_v2) != 0;
    std::copy_n(to.dmac, p.dmac.size(), p.dmac.begin());
    std::copy_n(to.remote_gid, p.dgid.size(), p.dgid.begin());
    p.smac = from_here.mac;
    p.sgid = from_here.id;
    p.vlan_present = (to.flags & icm::path_flag_vlan) != 0;
    p.vlan_tci = static_cast<std::uint16_t>(to.priority << 13 | from_here.vlan);
    p.encap = transport::encapsulation_of(to);
    const bool ect = v2 && (config_.congestion.reaction.priorities >> to.priority & 1) != 0;
    p.traffic_class = ect ? transport::ecn_capable(to.traffic_class) : to.traffic_class;
    p.flow_label = to.flow_label & 0xfffff;
    p.hop_limit = to.hop_limit;
    p.udp_source = transport::udp_source_of(to);
    p.udp_dest = beside_.responder.roce_v2_port;
    p.ipv4_id = p.udp_checksum = 0;
    p.ipv4_fragment = 0x4000;  // do not fragment
    p.bth = {};
    p.bth.opcode = j.opcode;
    p.bth.dest_qp = j.remote_qpn;
    p.bth.psn = wire::psn_t(j.psn);
    p.aeth.syndrome = j.syndrome;
    p.aeth.msn = j.msn;
    p.atomic_original = j.original;
    p.payload_length = j.payload;
    const std::uint8_t* begin = wire::build(p, f.buffer.data() + payload::frame::payload_start);
    f.begin = static_cast<std::uint32_t>(begin - f.buffer.data());
    f.length = p.icrc_offset + 4;
    f.insert_icrc = true;
    f.source = static_cast<std::uint8_t>(transport::egress_source::responder);
    f.priority = to.priority & 7;
    f.gid_index = to.gid_index;
    f.loopback =
        (to.flags & icm::path_flag_loopback) != 0 ? payload::frame::loopback_only : payload::frame::loopback_none;
  }

  const transport::responder_config& config_;
  const adapter::block_place::beside_channels beside_;
  std::array<sim::fifo_in<transport::answer_job>, 3> jobs_{sim::fifo_in<transport::answer_job>(*this),
                                                           sim::fifo_in<transport::answer_job>(*this),
                                                           sim::fifo_in<transport::answer_job>(*this)};
  std::array<sim::fifo_out<transport::answer_room>, 3> room_{sim::fifo_out<transport::answer_room>(*this),
                                                             sim::fifo_out<transport::answer_room>(*this),
                                                             sim::fifo_out<transport::answer_room>(*this)};
  std::array<sim::fifo_in<transport::egress_credit>, 2> credit_in_{sim::fifo_in<transport::egress_credit>(*this),
                                                                   sim::fifo_in<transport::egress_credit>(*this)};
  sim::fifo_out<payload::frame_ptr> frames_{*this};
  transport::port_map map_;
  std::array<std::deque<waiting>, lines> queues_;
  std::array<std::array<unsigned, priorities>, 2> credits_{};
  std::deque<std::pair<sim::cycle_t, unsigned*>> refused_;  // when it is known, and whose credit it was
  unsigned turn_ = 0;
  std::array<std::uint64_t, 3> accepted_{};
  std::uint64_t sourceless_ = 0, credit_wait_cycles_ = 0, look_ups_ = 0;
};

}  // namespace rnic::system_test
