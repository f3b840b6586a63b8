// SPDX-License-Identifier: Apache-2.0
#include "host_driver/functions/mad_tunnel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "host_driver/functions/master.h"
#include "model/abi/contexts.h"
#include "model/abi/paravirtual.h"
#include "model/abi/queue_entries.h"

namespace rnic::host_driver {

namespace {

namespace pv = abi::paravirtual;
namespace datagram = abi::wqe::datagram;

constexpr std::uint32_t area_bytes = 40;  // in front of a received datagram
constexpr std::uint32_t from_proxy_bytes = area_bytes + pv::to_tunnel::bytes + mad_bytes;
constexpr std::uint32_t to_proxy_bytes = pv::to_proxy::bytes + area_bytes + mad_bytes;
/// What is longer than a datagram of a proxy goes on into one buffer, behind the others: a receive that is too short
/// would end its queue pair.
constexpr std::uint32_t overflow_bytes = 4096;
constexpr std::uint64_t send_bit = std::uint64_t{1} << 32;
constexpr std::uint32_t gsi_qpn = 1;
constexpr std::uint16_t vid_mask = 0xfff;
constexpr std::uint64_t ps_per_ms = 1'000'000'000;
/// IDs that one function has at a time: connections of a whole machine, and a table of some megabytes for 126 of them.
constexpr std::size_t most_ids_of_function = 4096;

mac_address mac_of_number(std::uint64_t number) {
  mac_address mac{};
  for (std::size_t i = mac.size(); i-- > 0; number >>= 8) mac[i] = static_cast<std::uint8_t>(number);
  return mac;
}

}  // namespace

mad_tunnel::mad_tunnel(device& physical, bus_if& bus, const function_master& functions)
    : device_(physical),
      bus_(bus),
      functions_(functions),
      buffers_(physical.settings().function_mad_buffers),
      ids_(physical.settings().function_cm_id_keep_ms * ps_per_ms, most_ids_of_function) {}

mad_tunnel::~mad_tunnel() = default;

// ---------------------------------------------------------------- queue pairs

mad_tunnel::endpoint* mad_tunnel::find(bool wire, unsigned function, unsigned port) const {
  for (const auto& e : endpoints_)
    if (e->is_wire == wire && e->port == port && (wire || e->function == function)) return e.get();
  return nullptr;
}

int mad_tunnel::open_tunnel(unsigned function, unsigned port) {
  if (!begin_) return -ENODEV;
  if (pd_ == nullptr) pd_ = device_.alloc_pd();
  if (pd_ == nullptr) return -errno;
  if (const int error = open_wires(port)) return error;
  endpoint* tunnel = find(false, function, port);
  if (tunnel == nullptr)
    if (const int error = open(false, function, port, &tunnel)) return error;
  tunnel->active = true;
  if (!begun_) begin_();
  begun_ = true;
  return 0;
}

/// Where ports are mirrored, what is for the port comes to QP1 of port 1.
int mad_tunnel::open_wires(unsigned port) {
  for (unsigned p = 1; p <= device_.num_ports(); ++p) {
    endpoint* wire = find(true, 0, p);
    if (wire != nullptr || (p != port && !device_.mirrors_ports())) continue;
    if (const int error = open(true, 0, p, &wire)) return error;
  }
  return 0;
}

int mad_tunnel::mirror_ports() { return pd_ != nullptr ? open_wires(1) : 0; }

void mad_tunnel::close_tunnel(unsigned function, unsigned port) {
  if (endpoint* const e = find(false, function, port)) e->active = false;
}

void mad_tunnel::close_tunnels(unsigned function) {
  for (unsigned port = 1; port <= device_.num_ports(); ++port) close_tunnel(function, port);
  ids_.forget(function);
}

int mad_tunnel::open(bool wire, unsigned function, unsigned port, endpoint** out) {
  auto e = std::make_unique<endpoint>();
  e->is_wire = wire;
  e->active = wire;
  e->function = function;
  e->port = port;
  e->receive_bytes = wire ? area_bytes + mad_bytes : from_proxy_bytes;
  e->send_bytes = wire ? mad_bytes : to_proxy_bytes;
  if (const int error = create(*e)) {
    give_back(*e);
    return error;
  }
  *out = e.get();
  endpoints_.push_back(std::move(e));
  return 0;
}

int mad_tunnel::create(endpoint& e) {
  // The last vector: programs begin with the first one.
  const unsigned vector = device_.settings().completion_vectors - 1;
  e.cq = device_.create_cq(static_cast<int>(2 * buffers_), vector);
  e.receives = bus_.allocate(std::size_t{buffers_} * e.receive_bytes + overflow_bytes);
  e.sends = bus_.allocate(std::size_t{buffers_} * e.send_bytes);
  if (e.cq == nullptr || e.receives.pointer == nullptr || e.sends.pointer == nullptr) return -ENOMEM;
  ibv_qp_init_attr init{};
  init.send_cq = e.cq;
  init.recv_cq = e.cq;
  init.cap.max_send_wr = init.cap.max_recv_wr = buffers_;
  init.cap.max_send_sge = 1;
  init.cap.max_recv_sge = 2;
  init.sq_sig_all = 1;
  e.qp =
      e.is_wire ? device_.create_wire_gsi(pd_, &init, e.port) : device_.create_tunnel(pd_, &init, e.function, e.port);
  if (e.qp == nullptr) return -errno;
  for (std::uint32_t i = 0; i < buffers_; ++i) {
    post_receive(e, i);
    e.free_sends.push_back(i);
  }
  return device_.req_notify_cq(e.cq, 0);
}

void mad_tunnel::give_back(endpoint& e) {
  if (e.qp != nullptr) device_.destroy_qp(e.qp);
  if (e.cq != nullptr) device_.destroy_cq(e.cq);
  if (e.receives.pointer != nullptr) bus_.release(e.receives);
  if (e.sends.pointer != nullptr) bus_.release(e.sends);
}

void mad_tunnel::post_receive(endpoint& e, std::uint64_t place) {
  const std::uint32_t key = device_.caps().reserved_lkey;
  ibv_sge sges[] = {{e.receives.bus_address + place * e.receive_bytes, e.receive_bytes, key},
                    {e.receives.bus_address + std::uint64_t{buffers_} * e.receive_bytes, overflow_bytes, key}};
  ibv_recv_wr wr{}, *bad = nullptr;
  wr.wr_id = place;
  wr.sg_list = sges;
  wr.num_sge = 2;
  device_.post_recv(e.qp, &wr, &bad);
}

mad_tunnel::fault mad_tunnel::post(endpoint& e, const std::function<void(std::uint8_t*)>& fill,
                                   const address_handle& to, std::uint32_t qpn, std::uint32_t qkey) {
  if (e.free_sends.empty()) return fault::room;
  const std::uint32_t place = e.free_sends.back();
  e.free_sends.pop_back();
  fill(e.sends.pointer + std::size_t{place} * e.send_bytes);
  ibv_sge sge{e.sends.bus_address + std::uint64_t{place} * e.send_bytes, e.send_bytes, device_.caps().reserved_lkey};
  address_handle way = to;
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = send_bit | place;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.wr.ud = {&way, qpn, qkey};  // the request has all of it
  if (device_.post_send(e.qp, &wr, &bad) == 0) return fault::none;
  e.free_sends.push_back(place);
  return fault::room;
}

// ---------------------------------------------------------------- work

void mad_tunnel::run() {
  const unsigned vector = device_.settings().completion_vectors - 1;
  while (const completion_queue* const cq = device_.get_cq_event(vector)) {
    const auto of_cq = [cq](const auto& e) { return e->cq == cq; };
    const auto e = std::find_if(endpoints_.begin(), endpoints_.end(), of_cq);
    if (e != endpoints_.end()) serve(**e);
  }
  // The device is closed, and takes its objects down itself.
  for (const auto& e : endpoints_) {
    bus_.release(e->receives);
    bus_.release(e->sends);
  }
  endpoints_.clear();
  pd_ = nullptr;
  begun_ = false;
}

/// Armed first: what comes while the queue is emptied interrupts once more.
void mad_tunnel::serve(endpoint& e) {
  device_.req_notify_cq(e.cq, 0);
  ibv_wc wc{};
  while (device_.poll_cq(e.cq, 1, &wc) > 0) {
    if ((wc.wr_id & send_bit) != 0) {
      e.free_sends.push_back(static_cast<std::uint32_t>(wc.wr_id));
      continue;
    }
    const mac_address source = device_.last_source(*e.cq);
    const std::uint16_t tag = device_.last_tag(*e.cq);
    if (wc.status != IBV_WC_SUCCESS) continue;  // its queue pair is in error and takes no more
    if (e.is_wire) {
      const fault f = take_from_wire(e, wc, source, tag);
      ++(f == fault::none ? counts_.to_functions : counts_.from_wire[static_cast<std::size_t>(f)]);
    } else {
      const fault f = take_from_function(e, wc);
      ++(f == fault::none ? counts_.to_wire : counts_.from_function[static_cast<std::size_t>(f)]);
    }
    post_receive(e, wc.wr_id);
  }
}

/// ib/mad.c: mlx4_ib_multiplex_mad, mlx4_ib_send_to_wire.
mad_tunnel::fault mad_tunnel::take_from_function(endpoint& e, const ibv_wc& wc) {
  if (!e.active) return fault::inactive;
  if (wc.src_qp != pv::proxy(device_.tables().base_special_qpn(), e.function, e.port)) return fault::source;
  if (wc.byte_len != from_proxy_bytes) return fault::length;
  std::uint8_t* const header = e.receives.pointer + wc.wr_id * e.receive_bytes + area_bytes;
  std::uint8_t* const message = header + pv::to_tunnel::bytes;
  if (const fault f = mad_rules::fault_of(message); f != fault::none) return f;
  address_handle to;
  if (const fault f = address_of(e, header, message, &to); f != fault::none) return f;
  if (ids_.leave(e.function, message, bus_.now_ps()) != cm_ids::verdict::passes) return fault::connection_id;
  endpoint* const wire = find(true, 0, e.port);
  return post(
      *wire, [message](std::uint8_t* at) { std::copy_n(message, mad_bytes, at); }, to, gsi_qpn, gsi_qkey);
}

/// Where it goes is the function's word, as whom not.
mad_tunnel::fault mad_tunnel::address_of(const endpoint& e, const std::uint8_t* header, const std::uint8_t* message,
                                         address_handle* out) const {
  namespace h = pv::to_tunnel;
  constexpr unsigned port_mask = 3;
  const std::uint32_t qkey = abi::get(header, h::qkey);
  const unsigned own_port = abi::get(header, datagram::port_pd) >> 24 & port_mask;
  if (functions_.ports().physical_of(e.function, own_port) != e.port || abi::get(header, h::remote_qpn) != gsi_qpn ||
      (qkey != gsi_qkey && (qkey & pv::own_qkey) == 0))
    return fault::header;
  const function_ports::window w = functions_.ports().gids_of(e.function, e.port);
  const auto& gids = device_.port(e.port).gids;
  const unsigned own = abi::get(header, datagram::gid_index);
  if (own >= w.count || !gids[w.first + own].valid) return fault::gid;
  const auto is_own = [&](const gid_bytes& g) {
    const auto begin = gids.begin() + w.first;
    return std::any_of(begin, begin + w.count, [&g](const gid_row& row) { return row.valid && row.id == g; });
  };
  const auto paths = mad_rules::own_paths(message);
  if (std::any_of(paths.begin(), paths.end(), [&](const gid_bytes& g) { return g != gid_bytes{} && !is_own(g); }))
    return fault::gid;
  std::uint16_t tag = h::untagged;
  if (!tag_of(e, abi::get(header, h::vlan), &tag)) return fault::vlan;
  std::memcpy(out->av, header, sizeof out->av);
  std::memcpy(out->mac.data(), header + h::destination_mac, out->mac.size());
  abi::set(out->av, datagram::loopback, 0);
  abi::set(out->av, datagram::gid_index, static_cast<std::uint8_t>(w.first + own));
  abi::set(out->av, datagram::vlan_valid, tag != h::untagged ? 1 : 0);
  if (tag != h::untagged) {
    out->vlan = tag;
    abi::set(out->av, datagram::priority, tag >> 13);
  }
  out->type = gids[w.first + own].type;
  if (e.function != 0) out->source = mac_of_number(functions_.mac_of(e.function, e.port));
  return fault::none;
}

/// With which tag the function's datagram leaves. The administrator's, which the function does not know of, or one of a
/// VLAN that it has registered.
bool mad_tunnel::tag_of(const endpoint& e, std::uint16_t asked, std::uint16_t* out) const {
  *out = asked;
  if (e.function == 0) return true;
  if (const auto forced = functions_.forced_tag(e.function)) {
    *out = *forced;
    return asked == pv::to_tunnel::untagged;
  }
  return asked == pv::to_tunnel::untagged || functions_.has_vlan(e.function, e.port, asked & vid_mask);
}

/// ib/mad.c: mlx4_ib_demux_mad, mlx4_ib_send_to_slave.
mad_tunnel::fault mad_tunnel::take_from_wire(endpoint& e, const ibv_wc& wc, const mac_address& source,
                                             std::uint16_t tag) {
  if (wc.byte_len != area_bytes + mad_bytes) return fault::length;
  const std::uint8_t* const area = e.receives.pointer + wc.wr_id * e.receive_bytes;
  std::uint8_t* const message = e.receives.pointer + wc.wr_id * e.receive_bytes + area_bytes;
  if (const fault f = mad_rules::fault_of(message); f != fault::none) return f;
  const auto owner = functions_.owner_of(e.port, mad_rules::ends_of(area).destination);
  if (!owner) return fault::destination;
  const auto [function, port] = *owner;
  endpoint* const tunnel = find(false, function, port);
  if (tunnel == nullptr || !tunnel->active) return fault::inactive;
  if (const auto forced = functions_.forced_tag(function)) {
    const auto vid = [](std::uint16_t t) { return t == pv::to_tunnel::untagged ? 0 : t & vid_mask; };
    if (vid(tag) != vid(*forced)) return fault::vlan;
    tag = pv::to_tunnel::untagged;
  } else if (function != 0 && tag != pv::to_tunnel::untagged && !functions_.has_vlan(function, port, tag & vid_mask)) {
    return fault::vlan;
  }
  if (ids_.arrive(function, message, bus_.now_ps()) != cm_ids::verdict::passes) return fault::connection_id;
  const auto fill = [&](std::uint8_t* at) {
    namespace h = pv::to_proxy;
    std::memset(at, 0, h::bytes);
    abi::set(at, h::source_qpn, wc.src_qp);
    abi::set(at, h::network_header, (wc.wc_flags & IBV_WC_GRH) != 0 ? 1 : 0);
    abi::set(at, h::vlan, tag);
    std::copy_n(source.begin(), 4, at + h::mac_begin);
    std::copy_n(source.begin() + 4, 2, at + h::mac_end);
    std::copy_n(area, area_bytes + mad_bytes, at + h::bytes);
  };
  address_handle inside;
  abi::set(inside.av, datagram::port_pd, pd_->pdn | port << 24);
  abi::set(inside.av, datagram::loopback, 1);
  const bool v2 = device_.settings().ud_gid_type == config::datagram_version::v2;
  inside.type = v2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;  // post_send asks for what programs may
  return post(*tunnel, fill, inside, pv::proxy(device_.tables().base_special_qpn(), function, port), pv::own_qkey);
}

}  // namespace rnic::host_driver
