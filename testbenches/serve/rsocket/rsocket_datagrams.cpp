// SPDX-License-Identifier: Apache-2.0
#include "testbenches/serve/rsocket/rsocket_datagrams.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "host_driver/hosts/connection.h"
#include "model/abi/endian.h"

namespace rnic::serve {

using namespace host_driver;

namespace {

constexpr std::uint32_t udp_qkey = 0x01234567;  // RDMA_UDP_QKEY
constexpr std::uint64_t of_arrival = std::uint64_t{1} << 63;
constexpr std::uint8_t ipv4 = 4, ipv6 = 6;
constexpr std::size_t mapped_bytes = 12;

// struct ds_udp_header, in front of what a UDP datagram carries: who sends, and its queue pair.
constexpr std::uint32_t tag = 0x55555555;
constexpr std::uint8_t op_data = 0, op_control = 7;
constexpr std::size_t told_version = 4, told_op = 5, told_length = 6, told_qpn = 8, told_address = 12;
constexpr std::size_t told_ipv4 = 16, told_ipv6 = 28;  // bytes of it
constexpr unsigned qpn_mask = 0xffffff;

// struct ds_header, in front of a UD message: who sends.
constexpr std::size_t said_port = 2, said_ipv4_at = 4, said_ipv6_at = 8;
constexpr std::size_t said_ipv4 = 8, said_ipv6 = 24;  // bytes of it

/// The bytes of an address as headers have them.
const std::uint8_t* bytes_of(const gid_bytes& address) {
  return address.data() + (is_ipv4(address) ? mapped_bytes : 0);
}

std::vector<std::uint8_t> said_by(const udp_end& sender) {
  const bool v4 = is_ipv4(sender.address);
  std::vector<std::uint8_t> h(v4 ? said_ipv4 : said_ipv6);
  h[0] = v4 ? ipv4 : ipv6;
  h[1] = static_cast<std::uint8_t>(h.size());
  abi::store16(h.data(), said_port, sender.port);
  std::copy(bytes_of(sender.address), sender.address.data() + sender.address.size(),
            h.begin() + static_cast<std::ptrdiff_t>(v4 ? said_ipv4_at : said_ipv6_at));
  return h;
}

/// Who sends a UD message, and what; nothing when its header makes no sense.
std::optional<rsocket_datagrams::message> read_message(const std::uint8_t* data, std::size_t bytes) {
  if (bytes < said_ipv4 || bytes > rsocket_datagrams::slot_bytes) return std::nullopt;
  const std::size_t header = data[0] == ipv4 ? said_ipv4 : data[0] == ipv6 ? said_ipv6 : 0;
  if (header == 0 || data[1] != header || bytes < header) return std::nullopt;
  rsocket_datagrams::message m;
  m.from.port = abi::load16(data, said_port);
  if (data[0] == ipv4)
    m.from.address = ipv4_gid(abi::load32(data, said_ipv4_at));
  else
    std::copy_n(data + said_ipv6_at, m.from.address.size(), m.from.address.begin());
  m.data.assign(data + header, data + bytes);
  return m;
}

/// Whether there can be such a host: no group, nobody, and no broadcast address.
bool is_host(const gid_bytes& address, const mac_address& mac) {
  const auto none = [](std::uint8_t b) { return b == 0; };
  const auto all = [](std::uint8_t b) { return b == 0xff; };
  const auto host = address.begin() + mapped_bytes;
  const bool unspecified = std::all_of(is_ipv4(address) ? host : address.begin(), address.end(), none);
  const bool broadcast = is_ipv4(address) && std::all_of(host, address.end(), all);
  return (mac[0] & 1) == 0 && !is_multicast(address) && !unspecified && !broadcast;
}

/// Bytes of the header of a UDP datagram, 0 when it makes no sense.
std::size_t header_of(const udp_datagram& d) {
  if (!is_host(d.from.address, d.mac)) return 0;
  const bool v4 = is_ipv4(d.from.address);
  const std::size_t header = v4 ? told_ipv4 : told_ipv6;
  const std::vector<std::uint8_t>& data = d.data;
  if (data.size() < header || abi::load32(data.data(), 0) != tag || data[told_version] != (v4 ? ipv4 : ipv6) ||
      data[told_length] != header || (data[told_op] != op_data && data[told_op] != op_control) ||
      data.size() > rsocket_datagrams::slot_bytes)
    return 0;
  return header;
}

}  // namespace

rsocket_datagrams::rsocket_datagrams(served_host& host, const rdma_route& route, std::uint16_t port)
    : host_(host), device_(host.device()), route_(route), objects_(device_), udp_(host, route.gid_index, port, [this] {
        wake();
      }) {
  make_queue_pair();
}

rsocket_datagrams::~rsocket_datagrams() {
  for (auto& [who, p] : peers_)
    if (p.ah != nullptr) device_.destroy_ah(p.ah);
}

/// The port is open before there is a queue to wait for.
void rsocket_datagrams::wake() {
  if (cq_ != nullptr) device_.end_wait(cq_);
}

void rsocket_datagrams::make_queue_pair() {
  cq_ = objects_.cq(2 * depth);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.qp_type = IBV_QPT_UD;
  init.cap = {depth, depth, 1, 1, 0};
  qp_ = objects_.qp(init);
  out_ = objects_.buffer(std::size_t{depth} * slot_bytes);
  in_ = objects_.buffer(std::size_t{depth} * receive_bytes);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = udp_qkey;
  hosts::require(device_.modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
                 "modify_qp to INIT");
  attr.qp_state = IBV_QPS_RTR;
  hosts::require(device_.modify_qp(qp_, &attr, IBV_QP_STATE), "modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  hosts::require(device_.modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "modify_qp to RTS");
  for (unsigned slot = 0; slot < depth; ++slot) {
    free_.push_back(slot);
    post_one(slot);
  }
}

void rsocket_datagrams::post_one(unsigned slot) {
  post_receive(device_, qp_, of_arrival | slot, in_.sge(receive_bytes, std::uint64_t{slot} * receive_bytes));
}

void rsocket_datagrams::forget_one() {
  const auto oldest = std::min_element(peers_.begin(), peers_.end(),
                                       [](const auto& a, const auto& b) { return a.second.heard < b.second.heard; });
  if (oldest->second.ah != nullptr) device_.destroy_ah(oldest->second.ah);
  peers_.erase(oldest);
  ++count_.forgotten;
}

/// The peer, which is a new one perhaps.
rsocket_datagrams::peer& rsocket_datagrams::find(const udp_end& who, const mac_address& mac) {
  if (peers_.count(who) == 0) {
    if (peers_.size() >= most_peers) forget_one();
    peers_[who].mac = mac;
  }
  peer& p = peers_[who];
  p.heard = ++heard_;
  return p;
}

/// Messages to the peer go to this queue pair from now on.
void rsocket_datagrams::point(peer& p, const gid_bytes& address, const mac_address& mac, std::uint32_t qpn) {
  p.qpn = qpn;
  if (p.ah != nullptr && p.mac == mac) return;
  if (p.ah != nullptr) device_.destroy_ah(p.ah);
  p.mac = mac;
  const ibv_ah_attr path =
      path_to(address, route_.gid_index, route_.service_level, kernel_hop_limit, route_.traffic_class);
  p.ah = made(device_.create_ah(objects_.pd(), &path, &mac), "create_ah");
}

void rsocket_datagrams::tell(const udp_end& to, const peer& p, std::uint8_t op, const std::vector<std::uint8_t>& data) {
  const bool v4 = is_ipv4(own().address);
  std::vector<std::uint8_t> h(v4 ? told_ipv4 : told_ipv6);
  abi::store32(h.data(), 0, tag);
  h[told_version] = v4 ? ipv4 : ipv6;
  h[told_op] = op;
  h[told_length] = static_cast<std::uint8_t>(h.size());
  abi::store32(h.data(), told_qpn, qp_->qp_num & qpn_mask);
  std::copy(bytes_of(own().address), own().address.data() + own().address.size(),
            h.begin() + static_cast<std::ptrdiff_t>(told_address));
  h.insert(h.end(), data.begin(), data.end());
  udp_.send(to, p.mac, std::move(h));
}

void rsocket_datagrams::keep(message&& m) {
  if (messages_.size() >= most_messages) {
    ++count_.no_room;
    return;
  }
  messages_.push_back(std::move(m));
}

/// The sender is answered with our queue pair when it does not know that yet.
void rsocket_datagrams::take(const udp_datagram& d) {
  const std::size_t header = header_of(d);
  if (header == 0) {
    ++count_.malformed;
    return;
  }
  peer& p = find(d.from, d.mac);
  const bool data = d.data[told_op] == op_data;
  point(p, d.from.address, d.mac, abi::load32(d.data.data(), told_qpn) & qpn_mask);
  if (!data) return;
  tell(d.from, p, op_control, {});
  ++count_.over_udp;
  keep({d.from, {d.data.begin() + static_cast<std::ptrdiff_t>(header), d.data.end()}});
}

void rsocket_datagrams::take(const ibv_wc& wc) {
  const auto slot = static_cast<unsigned>(wc.wr_id & ~of_arrival);
  require_success(wc, false);
  if ((wc.wr_id & of_arrival) == 0) {
    free_.push_back(slot);
    return;
  }
  auto m = read_message(in_.at(std::size_t{slot} * receive_bytes + grh_bytes), wc.byte_len - grh_bytes);
  post_one(slot);
  if (!m) {
    ++count_.malformed;
    return;
  }
  const auto who = peers_.find(m->from);
  if (who != peers_.end()) who->second.heard = ++heard_;
  keep(std::move(*m));
}

/// Takes what has come, or waits for it.
void rsocket_datagrams::look(std::uint64_t timeout_ps) {
  bool some = false;
  while (const auto d = udp_.take()) {
    take(*d);
    some = true;
  }
  ibv_wc wc{};
  const int n =
      some ? device_.poll_cq(cq_, 1, &wc) : device_.wait_cq(cq_, 1, &wc, std::max<std::uint64_t>(timeout_ps, 1));
  hosts::require(n, "poll_cq");
  if (n != 0) take(wc);
}

void rsocket_datagrams::connect(const udp_end& to) {
  if (is_ipv4(to.address) != is_ipv4(own().address))
    throw peer_failure("IPv4 and IPv6 do not meet: --client and the GID of --gid-index are of different kinds");
  find(to, find_peer(host_, to.address, route_).mac);
}

bool rsocket_datagrams::send(const udp_end& to, const std::vector<std::uint8_t>& data) {
  while (free_.empty()) look(route_.patience_ps);
  const auto at = peers_.find(to);
  if (at == peers_.end()) {
    ++count_.unknown;
    return false;
  }
  if (at->second.ah == nullptr) {
    tell(to, at->second, op_data, data);
    return true;
  }
  std::vector<std::uint8_t> whole = said_by(own());
  whole.insert(whole.end(), data.begin(), data.end());
  if (whole.size() > slot_bytes) throw std::invalid_argument("a message is longer than a slot");
  const unsigned slot = free_.back();
  free_.pop_back();
  const std::size_t offset = std::size_t{slot} * slot_bytes;
  std::copy(whole.begin(), whole.end(), out_.at(offset));
  ibv_send_wr wr{};
  wr.wr_id = slot;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud.ah = at->second.ah;
  wr.wr.ud.remote_qpn = at->second.qpn;
  wr.wr.ud.remote_qkey = udp_qkey;
  post(device_, qp_, wr, out_.sge(static_cast<std::uint32_t>(whole.size()), offset));
  return true;
}

std::optional<rsocket_datagrams::message> rsocket_datagrams::receive(std::uint64_t timeout_ps) {
  const std::uint64_t begin = sc_core::sc_time_stamp().value();
  while (messages_.empty()) {
    const std::uint64_t waited = sc_core::sc_time_stamp().value() - begin;
    if (waited >= timeout_ps) return std::nullopt;
    look(timeout_ps - waited);
  }
  std::optional<message> m(std::move(messages_.front()));
  messages_.pop_front();
  return m;
}

}  // namespace rnic::serve
