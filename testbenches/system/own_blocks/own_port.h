// SPDX-License-Identifier: Apache-2.0
// A port by its data sheet: what one without pauses, frames for itself and CNMs is.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "model/adapter/block_place.h"
#include "model/mac/credit_returns.h"
#include "model/mac/mac_cr.h"
#include "model/mac/port_config.h"
#include "model/mac/port_if.h"
#include "model/mac/port_state.h"
#include "model/payload/frame_stream.h"
#include "model/register_bus/cr_space.h"
#include "model/register_bus/reset_if.h"
#include "model/sim/check.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/timed_inbox.h"
#include "model/wire/icrc.h"

namespace rnic::system_test {

/// It is ticked in every cycle in which it has anything, and looks at each beat of a frame where the model's knows
/// which of them decides.
class own_port final : public sim::clocked_block,
                       public register_bus::cr_target_if,
                       public register_bus::reset_target_if,
                       public payload::frame_sink_if,
                       public mac::port_if {
 public:
  explicit own_port(adapter::block_place& place)
      : clocked_block(place.name() + ".own", place.clock()),
        config_(port_config_of(place.parameters(), place.beside().port)),
        receive_ps_(mac::receive_path(config_).mac),
        from_line_(name() + ".from_line", *this) {
    const std::string number = std::to_string(place.beside().port + 1), own = "port" + number;
    place.bind("icrc_insert_to_" + own + "_frames", from_icrc_);
    place.bind(own + "_to_requester_credits", credits_[0]);
    place.bind(own + "_to_answer_transmit_credits", credits_[1]);
    place.bind(own + "_to_parser" + number + "_frames", to_parser_);
    place.bind(own + "_to_cnm_receiver_cnms", cnms_);
    place.bind("icrc_check_to_" + own + "_departures", gone_[0]);
    place.bind("steering_to_" + own + "_departures", gone_[1]);
    place.bind("parser" + number + "_to_" + own + "_departures", gone_[2]);
    for (const auto& [counter, value] : {std::pair{"tx_frames", &tx_frames_},
                                         {"tx_bytes", &tx_bytes_},
                                         {"rx_frames", &rx_frames_},
                                         {"rx_bytes", &rx_bytes_},
                                         {"drop_fcs", &drop_fcs_},
                                         {"drop_overflow", &drop_overflow_},
                                         {"drop_too_long", &drop_too_long_},
                                         {"drop_link_down", &drop_link_down_}})
      place.around().statistics.add(place.name() + "." + counter, *value);
    device_reset();
  }

  void deliver(payload::frame_ptr frame, sim::time_ps arrival) override {
    from_line_.push(std::move(frame), arrival + receive_ps_);
  }
  payload::frame_sink_if& receiver() override { return *this; }
  void attach(payload::frame_sink_if& line) override { line_ = &line; }
  bool attached() const override { return line_ != nullptr; }

  std::uint32_t cr_read(std::uint32_t offset) override {
    namespace cr = mac::cr;
    if (offset == cr::port_status) return link_up() ? 3 : attached() ? 2 : 0;
    if (offset == cr::link_rate) return config_.rate_mbps;
    if (offset == cr::link_speed_code) return cr::speed_code(config_.rate_mbps);
    if (offset == cr::link_medium) return attached() ? cr::medium_copper : cr::medium_none;
    return registers_[offset];
  }
  void cr_write(std::uint32_t offset, std::uint32_t value) override {
    registers_[offset] = value;
    wake_next();
  }
  void device_reset() override {
    registers_ = {{mac::cr::mtu, config_.mtu},
                  {mac::cr::default_priority, config_.default_priority},
                  {mac::cr::arbitration, static_cast<std::uint32_t>(mac::arbitration::round_robin)},
                  {mac::cr::prio2tc, 0x76543210}};
  }

 private:
  static constexpr std::uint64_t byte_at_1_mbps = 8'000'000;  // ps
  bool link_up() { return (registers_[mac::cr::port_control] & 1) != 0 && attached(); }

  void tick() override {
    if (open_ && now() >= complete_) send(std::move(open_));
    take_departures();
    while (from_line_.can_pop()) check();
    hand_on();
    const bool took = accept();
    if (choose() && !took) accept();
    const bool idle = sending() == 0 && !open_ && from_line_.empty() && reading() == 0;
    if (!idle || from_icrc_.can_pop()) wake_next();
  }
  unsigned sending() const { return filled(egress_); }
  unsigned reading() const { return filled(ingress_); }
  static unsigned filled(const std::array<std::deque<payload::frame_ptr>, 8>& queues) {
    unsigned mask = 0;
    for (unsigned p = 0; p < 8; ++p) mask |= (queues[p].empty() ? 0u : 1u) << p;
    return mask;
  }
  /// The next one behind the last, as 802.1Q has it for queues in turn.
  static unsigned next_of(unsigned mask, unsigned& last) {
    do last = (last + 1) % 8;
    while ((mask >> last & 1) == 0);
    return last;
  }

  // Transmit.
  bool accept() {
    if (!from_icrc_.can_pop()) return false;
    RNIC_ASSERT(from_icrc_.front()->loopback == payload::frame::loopback_none, name() + ": frames for the own port");
    auto& queue = egress_[from_icrc_.front()->priority & 7u];
    if (queue.size() >= std::size_t{2} * config_.egress_frames) return false;
    queue.push_back(from_icrc_.pop());
    return true;
  }
  bool choose() {
    if (sending() == 0 || !link_up()) return false;
    if (domain().edge_time(now() + 1) <= free_ps()) return false;  // a later edge will do
    unsigned ready = sending();
    for (unsigned p = 0; p < 8; ++p)
      if ((ready >> p & 1) != 0 && !credits_[egress_[p].front()->source].claim()) ready &= ~(1u << p);
    if (ready == 0) return false;
    const unsigned priority = next_of(ready, last_sent_);
    payload::frame_ptr f = std::move(egress_[priority].front());
    egress_[priority].pop_front();
    credits_[f->source].push({config_.index, static_cast<std::uint8_t>(priority)});
    mac::pad(*f);
    ++tx_frames_;
    tx_bytes_ += f->length + 4;
    start(std::move(f));
    return true;
  }
  /// The line's time in ps of 1 / rate.
  sim::time_ps free_ps() const { return free_ / config_.rate_mbps; }
  void start(payload::frame_ptr f) {
    sim::time_ps first = now_ps();
    for (std::uint32_t at = 0; f->first_byte != 0 && at < f->length; at += config_.datapath_bytes) {
      const sim::time_ps there = domain().edge_time(payload::byte_at(*f, at, config_.datapath_bytes));
      const sim::time_ps after = (8 + at) * byte_at_1_mbps / config_.rate_mbps;
      if (there > first + after) first = there - after;
    }
    free_ = std::max(free_, first * config_.rate_mbps);
    f->stamp = free_ps() + mac::transmit_ps(config_);
    const std::uint64_t last = free_ + (8 + f->length + 4) * byte_at_1_mbps;
    free_ = last + 12 * byte_at_1_mbps;
    last_bit_ = last / config_.rate_mbps + mac::transmit_ps(config_);
    if (!f->open) return send(std::move(f));
    complete_ = payload::last_byte_at(*f, config_.datapath_bytes);
    open_ = std::move(f);
  }
  void send(payload::frame_ptr f) {
    f->fcs = wire::ethernet_fcs(f->data(), f->length);
    line_->deliver(std::move(f), last_bit_);
  }

  // Receive.
  void check() {
    const sim::time_ps arrival = from_line_.front_arrival() - receive_ps_;
    payload::frame_ptr f = from_line_.pop();
    const bool tagged = mac::is_tagged(*f);
    f->port = config_.index;
    f->source = 0;
    f->control = f->insert_icrc = false;
    f->icrc_ok = true;
    f->gid_index = 0;
    f->function = payload::frame::any_function;
    f->loopback = payload::frame::loopback_none;
    f->stamp = arrival;
    f->priority = static_cast<std::uint8_t>(tagged ? f->data()[14] >> 5 : registers_[mac::cr::default_priority]);
    f->fcs_ok = wire::ethernet_fcs(f->data(), f->length) == f->fcs;
    const std::uint32_t size = f->length + 4;
    if (!link_up()) return count(drop_link_down_);
    if (!f->fcs_ok) return count(drop_fcs_);
    if (size > registers_[mac::cr::mtu]) return count(drop_too_long_);
    ++rx_frames_;
    rx_bytes_ += size;
    if (room_[f->priority] + size > config_.ingress_bytes) return count(drop_overflow_);
    room_[f->priority] += size;
    ingress_[f->priority].push_back(std::move(f));
  }
  static void count(std::uint64_t& counter) { ++counter; }
  /// What they tell of has left by the edge at which its last beat does.
  void take_departures() {
    for (unsigned i = 0; i < gone_.size(); ++i) {
      if (gone_[i].can_pop()) {
        release(i);
        leaving_[i] = gone_[i].pop();
        room_[leaving_[i].priority] -= 4;
      }
      if (now() >= leaving_[i].from + payload::beats_of(leaving_[i].bytes, config_.datapath_bytes)) release(i);
    }
  }
  void release(unsigned taker) {
    room_[leaving_[taker].priority] -= leaving_[taker].bytes;
    leaving_[taker].bytes = 0;
  }
  void hand_on() {
    if (reading() == 0 || now() < read_until_ || !to_parser_.claim()) return;
    const unsigned priority = next_of(reading(), last_read_);
    payload::frame_ptr f = std::move(ingress_[priority].front());
    ingress_[priority].pop_front();
    read_until_ = now() + payload::beats_of(f->length, config_.datapath_bytes);
    f->first_byte = now() + 1;
    to_parser_.push(std::move(f));
  }

  const mac::port_config config_;
  const sim::time_ps receive_ps_;
  std::map<std::uint32_t, std::uint32_t> registers_;
  payload::frame_sink_if* line_ = nullptr;
  sim::timed_inbox<payload::frame_ptr> from_line_;
  sim::fifo_in<payload::frame_ptr> from_icrc_{*this};
  sim::fifo_out<payload::frame_ptr> to_parser_{*this}, cnms_{*this};
  mac::credit_ports credits_{sim::fifo_out<transport::egress_credit>(*this),
                             sim::fifo_out<transport::egress_credit>(*this)};
  std::array<sim::fifo_in<payload::departure>, 3> gone_{sim::fifo_in<payload::departure>(*this),
                                                        sim::fifo_in<payload::departure>(*this),
                                                        sim::fifo_in<payload::departure>(*this)};
  std::array<std::deque<payload::frame_ptr>, 8> egress_, ingress_;
  unsigned last_sent_ = 7, last_read_ = 7;
  std::uint64_t free_ = 0;               // when the line is so, in ps / rate_mbps
  payload::frame_ptr open_;              // on the line, its last bytes are still written
  sim::cycle_t complete_ = 0;            // edge at which they are there
  sim::time_ps last_bit_ = 0;            // of the frame on the line
  std::array<std::uint32_t, 8> room_{};  // that is taken, by priority
  std::array<payload::departure, 3> leaving_{};
  sim::cycle_t read_until_ = 0;
  std::uint64_t tx_frames_ = 0, tx_bytes_ = 0, rx_frames_ = 0, rx_bytes_ = 0;
  std::uint64_t drop_fcs_ = 0, drop_overflow_ = 0, drop_too_long_ = 0, drop_link_down_ = 0;
};

}  // namespace rnic::system_test
