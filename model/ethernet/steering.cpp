// SPDX-License-Identifier: Apache-2.0
#include "model/ethernet/steering.h"

#include <algorithm>
#include <utility>

#include "model/payload/frame_copy.h"
#include "model/wire/ethernet.h"
#include "model/wire/internet.h"

namespace rnic::ethernet {

namespace {

constexpr std::size_t longest_list = 1024;  // group addresses in a port's filter
constexpr std::uint32_t tagged_bytes = 18;  // destination to tag

wire::mac_address destination_of(const payload::frame& f) {
  wire::mac_address mac;
  std::copy_n(f.data(), mac.size(), mac.begin());
  return mac;
}

}  // namespace

steering::steering(std::string name, sim::clock_domain& domain, const config& cfg, const icm::icm_map& map,
                   const std::array<const gid::gid_table*, ports>& gids, payload::frame_pool& frames,
                   sim::statistics& stats)
    : clocked_block(name, domain),
      rx_in{sim::fifo_in<payload::frame_ptr>(*this), sim::fifo_in<payload::frame_ptr>(*this)},
      out(*this),
      departures{sim::fifo_out<payload::departure>(*this), sim::fifo_out<payload::departure>(*this)},
      config_(sim::checked(cfg, this->name())),
      gids_(gids),
      frames_(frames),
      walk_(this->name() + ".groups", *this, cfg.groups, map, stats),
      flows_(this->name() + ".flows", *this, cfg.flows, stats),
      registers_{register_file(*this, 0), register_file(*this, 1)},
      pipeline_(cfg.frames) {
  if (cfg.bytes_per_cycle == 0) throw sim::config_error(this->name() + ".bytes_per_cycle: must be 1 or more");
  for (register_file& r : registers_) has_registers(r);
  members_.reserve(flow::cr::max_members + flow::cr::max_copies);
  for (port_tables& t : tables_) t.groups.reserve(longest_list);
  const std::pair<const char*, const std::uint64_t*> named[] = {{"frames", &count_.frames},
                                                                {"copies", &count_.copies},
                                                                {"drop.vlan_filtered", &count_.drop_vlan_filtered},
                                                                {"drop.group_filtered", &count_.drop_group_filtered},
                                                                {"drop.no_match", &count_.drop_no_match},
                                                                {"drop.reset", &count_.drop_reset}};
  for (const auto& [n, c] : named) stats.add(this->name() + "." + n, *c);
}

void steering::tick() {
  walk_.service();
  deliver();
  take();
}

/// One copy of the frame in front.
void steering::deliver() {
  if (pipeline_.empty()) return;
  stage& s = pipeline_.front();
  if (s.ready > now()) return wake_at(s.ready);
  if (search_ != search::done && !find_members(*s.frame)) return;
  if (next_member_ != members_.size()) {
    if (!output_.is_free()) return output_.await();
    if (!out.claim()) return;
    const std::uint32_t qpn = members_[next_member_++];
    ++count_.copies;
    if (next_member_ != members_.size()) {
      hand_on(copy_of(*s.frame), qpn);
      return output_.await();
    }
    hand_on(std::move(s.frame), qpn);
  } else {
    ++count_.drop_no_match;
  }
  s.frame.reset();
  pipeline_.drop();
  search_ = search::none;
  if (!pipeline_.empty()) wake_at(std::max(pipeline_.front().ready, now() + 1));
}

void steering::hand_on(payload::frame_ptr frame, std::uint32_t qpn) {
  wire::packet& p = frame->packet;
  frame->plain = true;
  // As the responder counts the bytes of a packet for one receive.
  p.bth = wire::bth{};
  p.bth.opcode = wire::make_opcode(wire::transport::ud, wire::operation::send_only);
  p.bth.dest_qp = qpn;
  p.immediate = p.xrceth = 0;
  p.payload_offset = 0;
  p.payload_length = frame->length;
  output_.start(payload::beats_of(frame->length, config_.bytes_per_cycle));
  payload::stream_out(out, std::move(frame), now(), 0, config_.bytes_per_cycle);
}

payload::frame_ptr steering::copy_of(const payload::frame& from) {
  payload::frame_ptr to = frames_.get();
  payload::copy_contents(*to, from);
  to->fcs_ok = from.fcs_ok;
  to->port = from.port;
  to->loopback = from.loopback;
  return to;
}

/// Ports in turn.
void steering::take() {
  if (!rx_in[0].can_pop() && !rx_in[1].can_pop()) return;
  if (!input_.is_free()) return input_.await();
  if (pipeline_.full()) return input_.blocked("pipeline");  // its head wakes us
  const unsigned port = rx_in[1 - last_port_].can_pop() ? 1 - last_port_ : last_port_;
  last_port_ = port;
  payload::frame_ptr f = rx_in[port].pop();
  ++count_.frames;
  input_.start(std::max<sim::cycle_t>(config_.frame_cycles, payload::beats_of(f->length, config_.bytes_per_cycle)));
  if (departures[port].bound()) departures[port].push({now(), f->length, f->priority});
  if (passes_filters(*f)) {
    const sim::cycle_t headers = payload::byte_at(*f, header_bytes(*f) - 1, config_.bytes_per_cycle);
    const sim::cycle_t begins = std::max(headers, now());
    pipeline_.push({std::move(f), begins + config_.pipeline_cycles});
    wake_at(pipeline_.back().ready);
  }
  if (rx_in[0].can_pop() || rx_in[1].can_pop()) input_.await();
}

/// That must be there before a frame is looked up.
std::uint32_t steering::header_bytes(const payload::frame& f) const {
  return flows_.enabled() ? flow::key_bytes(f) : std::clamp(f.length, 1u, tagged_bytes);
}

bool steering::passes_filters(const payload::frame& f) {
  const port_tables& t = tables_[f.port % ports];
  if (t.vlan_filter) {
    const wire::frame_view v = wire::inspect(f.data(), f.length);
    if ((v.ctag || v.stag) && !t.vlans[v.tci & 0xfff]) {
      ++count_.drop_vlan_filtered;
      return false;
    }
  }
  const wire::mac_address mac = destination_of(f);
  if (t.group_filter && wire::is_multicast(mac) &&
      std::find(t.groups.begin(), t.groups.end(), wire::to_u64(mac)) == t.groups.end()) {
    ++count_.drop_group_filtered;
    return false;
  }
  return true;
}

/// False: not now.
bool steering::find_flow(const payload::frame& f) {
  if (search_ == search::none) {
    flows_.begin(flow::key_of_frame(f), f.loopback != payload::frame::loopback_none);
    search_ = search::walking;
  }
  if (flows_.step() == flow::flow_table::result::waiting) return false;
  members_ = flows_.members();
  next_member_ = 0;
  search_ = search::done;
  return true;
}

/// False: not now.
bool steering::find_members(const payload::frame& f) {
  if (flows_.enabled()) return find_flow(f);
  const port_tables& t = tables_[f.port % ports];
  const wire::mac_address mac = destination_of(f);
  const bool group = wire::is_multicast(mac);
  if (search_ == search::none) begin_search(f);
  using result = icm::group_walk::result;
  const bool by_table = group_steering_ || (group && t.multicast >> 30 != 2);
  const result r = by_table ? walk_.step() : result::absent;
  if (r == result::next || r == result::waiting) return false;
  search_ = search::done;
  if (r == result::found) {
    for (const std::uint32_t m : walk_.members()) add_member(f, m);
    return true;
  }
  if (group_steering_) {
    use_default(f, group ? to_groups : to_unicast);
  } else if ((t.base & cr::rqp_valid) == 0) {
    return true;
  } else if (group) {
    if (t.multicast >> 30 != 0) add_member(f, t.multicast);
  } else {
    const gid::gid_table& gids = *gids_[f.port % ports];
    mac_table_.access_own(0);
    for (unsigned i = 0; i < gid::table_size && members_.empty(); ++i)
      if (gids.mac_valid(i) && gids.mac(i) == mac) add_member(f, (t.base + i) & icm::group_member_qpn);
    if (members_.empty() && (t.promiscuous >> 31) != 0) add_member(f, t.promiscuous & icm::group_member_qpn);
  }
  return true;
}

void steering::begin_search(const payload::frame& f) {
  constexpr std::size_t port_byte = 5, steer_byte = 7, mac_byte = 10;  // of an Ethernet "GID" (4.18)
  std::array<std::uint8_t, 16> id{};
  std::copy_n(f.data(), 6, id.begin() + mac_byte);
  id[port_byte] = static_cast<std::uint8_t>(f.port + 1);
  if ((f.data()[0] & 1) == 0) id[steer_byte] = to_unicast << 1;
  walk_.begin(id.data(), icm::group_walk::protocol::ethernet);
  members_.clear();
  next_member_ = 0;
  search_ = search::walking;
}

void steering::use_default(const payload::frame& f, unsigned kind) {
  const port_tables& t = tables_[f.port % ports];
  for (std::uint32_t i = 0; i < t.default_count[kind]; ++i) add_member(f, t.defaults[kind][i]);
}

/// What this port sent does not come back to those that asked not to get it.
void steering::add_member(const payload::frame& f, std::uint32_t member) {
  if (f.loopback == payload::frame::loopback_none || (member & icm::group_member_no_loopback) == 0)
    members_.push_back(member & icm::group_member_qpn);
}

void steering::device_reset() {
  count_.drop_reset += pipeline_.size();
  pipeline_.clear();
  search_ = search::none;
  members_.clear();
  next_member_ = 0;
  walk_.reset();
  flows_.reset();
  group_steering_ = false;
  for (port_tables& t : tables_) {
    t.vlans.reset();
    t.vlan_filter = t.group_filter = false;
    t.groups.clear();
    t.base = t.promiscuous = t.multicast = 0;
    t.default_count.fill(0);
  }
  wake_next();
}

std::uint32_t steering::read(unsigned port, std::uint32_t offset) const {
  const port_tables& t = tables_[port];
  if (offset < cr::vlan_filter + 4 * cr::vlan_filter_words) {
    std::uint32_t word = 0;
    for (unsigned bit = 0; bit < 32; ++bit) word |= t.vlans[offset / 4 * 32 + bit] ? 1u << bit : 0;
    return word;
  }
  switch (offset) {
    case cr::vlan_filter_on:
      return t.vlan_filter ? 1 : 0;
    case cr::multicast_filter_on:
      return t.group_filter ? 1 : 0;
    case cr::rqp_base:
      return t.base;
    case cr::rqp_promiscuous:
      return t.promiscuous;
    case cr::rqp_multicast:
      return t.multicast;
    case cr::group_steering:
      return group_steering_ ? 1 : 0;
    case cr::group_hash_bits:
      return walk_.hash_bits();
    default:
      break;
  }
  if (offset - cr::flows < flow::cr::bytes) return flows_.cr_read(offset - cr::flows);
  const std::uint32_t kind = (offset - cr::default_entry) / cr::default_stride;
  return offset >= cr::default_entry && kind < 2 && offset % cr::default_stride == 0 ? t.default_count[kind] : 0;
}

void steering::write(unsigned port, std::uint32_t offset, std::uint32_t value) {
  port_tables& t = tables_[port];
  if (offset < cr::vlan_filter + 4 * cr::vlan_filter_words) {
    for (unsigned bit = 0; bit < 32; ++bit) t.vlans[offset / 4 * 32 + bit] = (value >> bit & 1) != 0;
    return;
  }
  if (offset >= cr::default_entry && offset < cr::default_entry + 2 * cr::default_stride) {
    const std::uint32_t kind = (offset - cr::default_entry) / cr::default_stride,
                        word = offset % cr::default_stride / 4;
    if (word == 0)
      t.default_count[kind] = std::min(value, std::uint32_t{icm::multicast_group::max_members});
    else if (word <= icm::multicast_group::max_members)
      t.defaults[kind][word - 1] = value;
    return;
  }
  switch (offset) {
    case cr::vlan_filter_on:
      t.vlan_filter = value != 0;
      break;
    case cr::multicast_filter_on:
      t.group_filter = value != 0;
      break;
    case cr::multicast_filter_clear:
      t.groups.clear();
      break;
    case cr::multicast_filter_high:
      t.group_high = static_cast<std::uint16_t>(value);
      break;
    case cr::multicast_filter_add:
      if (t.groups.size() < longest_list) t.groups.push_back(std::uint64_t{t.group_high} << 32 | value);
      break;
    case cr::rqp_base:
      t.base = value;
      break;
    case cr::rqp_promiscuous:
      t.promiscuous = value;
      break;
    case cr::rqp_multicast:
      t.multicast = value;
      wake_next();  // a search that waits for an entry may need none any more
      break;
    default:
      write_device(offset, value);
      break;
  }
}

void steering::write_device(std::uint32_t offset, std::uint32_t value) {
  if (offset - cr::flows < flow::cr::bytes) return write_flows(offset - cr::flows, value);
  switch (offset) {
    case cr::group_steering:
      group_steering_ = value != 0;
      wake_next();
      break;
    case cr::group_hash_bits:
      walk_.set_hash_bits(value);
      break;
    case cr::group_written:
      walk_.written(value);
      break;
    case cr::reset:
      if (value == 1) device_reset();
      break;
    default:
      break;
  }
}

/// A search that is under way when another table is to be asked begins anew.
void steering::write_flows(std::uint32_t offset, std::uint32_t value) {
  const bool before = flows_.enabled();
  flows_.cr_write(offset, value);
  if (flows_.enabled() == before || search_ != search::walking) return;
  search_ = search::none;
  wake_next();
}

}  // namespace rnic::ethernet
