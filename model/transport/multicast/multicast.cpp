// SPDX-License-Identifier: Apache-2.0
#include "model/transport/multicast/multicast.h"

#include <utility>

#include "model/payload/frame_copy.h"
#include "model/payload/frame_stream.h"
#include "model/sim/check.h"
#include "model/transport/transport_cr.h"

namespace rnic::transport {

multicast::multicast(const std::string& name, sim::clock_domain& domain, const multicast_config& config,
                     const icm::icm_map& map, payload::frame_pool& frames, sim::span_recorder& spans,
                     sim::statistics& stats)
    : clocked_block(name, domain),
      bytes_per_cycle_(sim::checked(config, this->name()).bytes_per_cycle),
      frames_(frames),
      spans_(spans),
      walk_(this->name() + ".groups", *this, config.groups, map, stats),
      flows_(this->name() + ".flows", *this, config.flows, stats),
      waiting_(config.waiting) {
  if (bytes_per_cycle_ == 0) throw sim::config_error(this->name() + ".bytes_per_cycle: must be 1 or more");
  members_.reserve(flow::cr::max_members + flow::cr::max_copies);
  const std::pair<const char*, const std::uint64_t*> named[] = {{"datagrams", &datagrams_},
                                                                {"copies", &copies_},
                                                                {"drop.no_group", &drop_no_group_},
                                                                {"drop.reset", &drop_reset_},
                                                                {"drop.full", &drop_full_}};
  for (const auto& [n, c] : named) stats.add(this->name() + "." + n, *c);
}

void multicast::tick() {
  walk_.service();
  take();
  switch (state_) {
    case state::copying:
      return copy();
    case state::searching:
      return search();
    case state::idle:
      return accept();
  }
}

void multicast::take() {
  if (!in.can_pop()) return;
  payload::expect_packet(*in.front(), bytes_per_cycle_, now(), *this);
  ++datagrams_;
  if (waiting_.full()) {
    ++drop_full_;
    in.pop().reset();
    return;
  }
  waiting_.push(in.pop());
}

void multicast::accept() {
  if (waiting_.empty()) return;
  if (!copier_.is_free()) return copier_.await();
  frame_ = waiting_.pop();
  missed_ = blocked_ = false;
  begin_search();
}

/// The first entry, or word, is read in the next cycle.
void multicast::begin_search() {
  if (!flows_.enabled()) walk_.begin(frame_->packet.dgid.data(), icm::group_walk::protocol::roce);
  flow_asked_ = false;
  state_ = state::searching;
  wake_next();
}

icm::group_walk::result multicast::ask_table() {
  using result = icm::group_walk::result;
  if (!flows_.enabled()) {
    const result r = walk_.step();
    if (r == result::waiting) missed_ = true;
    return r;
  }
  if (!std::exchange(flow_asked_, true)) flows_.begin(flow::key_of_datagram(*frame_), is_own());
  const flow::flow_table::result r = flows_.step();
  if (r == flow::flow_table::result::waiting) return result::waiting;
  return r == flow::flow_table::result::found ? result::found : result::absent;
}

void multicast::search() {
  using result = icm::group_walk::result;
  const result r = ask_table();
  if (r == result::waiting || r == result::next) return;
  members_.clear();
  next_ = 0;
  if (r == result::found) mask_members();
  if (members_.empty()) {
    ++drop_no_group_;
    return end();
  }
  spans_.leave(frame_->span, name(), "search", now_ps(), missed_ ? sim::wait::context_miss : sim::wait::none);
  state_ = state::copying;
  wake_next();
}

void multicast::mask_members() {
  if (flows_.enabled()) {
    members_ = flows_.members();  // masked there
    return;
  }
  const bool own = is_own();
  for (const std::uint32_t m : walk_.members())
    if (!own || (m & icm::group_member_no_loopback) == 0) members_.push_back(m & icm::group_member_qpn);
}

void multicast::copy() {
  if (!copier_.is_free()) return copier_.await();
  if (!out.claim()) {  // the channel wakes us
    blocked_ = true;
    return copier_.blocked("responder");
  }
  const sim::cycle_t beats = payload::beats_of(frame_->length, bytes_per_cycle_);
  const std::uint32_t qpn = members_[next_++];
  const bool last = next_ == members_.size();
  if (last) {  // the message is with all when the last one has it
    if (next_ != 1 || blocked_) spans_.leave(frame_->span, name(), "turn", now_ps(), sim::wait::arbitration);
    spans_.leave(frame_->span, name(), "copy", domain().edge_time(now() + beats));
  }
  payload::frame_ptr made = last ? std::move(frame_) : next_copy();
  made->packet.bth.dest_qp = qpn;
  out.push_after(std::move(made), beats - 1);
  copier_.start(beats);
  ++copies_;
  if (last) return end();
  copier_.await();
}

payload::frame_ptr multicast::next_copy() {
  payload::frame_ptr to = frames_.get();
  payload::copy_contents(*to, *frame_);
  to->port = frame_->port;
  to->loopback = frame_->loopback;
  to->gid_index = frame_->gid_index;
  to->function = frame_->function;
  to->packet = frame_->packet;
  return to;
}

void multicast::end() {
  frame_.reset();
  state_ = state::idle;
  if (!waiting_.empty()) wake_next();
}

std::uint32_t multicast::cr_read(std::uint32_t offset) {
  if (offset - cr::flows < flow::cr::bytes) return flows_.cr_read(offset - cr::flows);
  return offset == cr::mcg_hash_bits ? walk_.hash_bits() : 0;
}

/// A search that is under way when another table is to be asked begins anew.
void multicast::write_flows(std::uint32_t offset, std::uint32_t value) {
  const bool before = flows_.enabled();
  flows_.cr_write(offset, value);
  if (flows_.enabled() != before && state_ == state::searching) begin_search();
}

void multicast::cr_write(std::uint32_t offset, std::uint32_t value) {
  if (offset - cr::flows < flow::cr::bytes) return write_flows(offset - cr::flows, value);
  switch (offset) {
    case cr::mcg_written:
      return walk_.written(value);
    case cr::mcg_hash_bits:
      return walk_.set_hash_bits(value);
    case cr::reset:
      if (value == 1) device_reset();
      return;
    default:
      return;
  }
}

void multicast::device_reset() {
  if (frame_) ++drop_reset_;
  walk_.reset();
  flows_.reset();
  end();
}

}  // namespace rnic::transport
