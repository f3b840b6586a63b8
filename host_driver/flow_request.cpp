// SPDX-License-Identifier: Apache-2.0
#include "host_driver/flow_request.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/abi/command_set.h"

namespace rnic::host_driver {

namespace f = abi::flow_rule;

namespace {

constexpr unsigned most_headers = 10;  // IB_FLOW_SPEC_SUPPORT_LAYERS

/// The rule of this type in a program's list, whole. False: it has another length.
template <class Spec>
bool read(Spec& to, const std::uint8_t* from, std::size_t bytes) {
  if (bytes != sizeof to) return false;
  std::memcpy(&to, from, sizeof to);
  return true;
}

/// Both are in network byte order.
template <class T>
void copy_field(std::uint8_t* to, std::size_t at, const T& value) {
  std::memcpy(to + at, &value, sizeof value);
}

}  // namespace

void flow_request::set(const control& c) {
  abi::set(mailbox_, f::priority, c.priority);
  abi::set(mailbox_, f::type, c.type);
  abi::set(mailbox_, f::flags, c.loopback ? f::flag_loopback : std::uint8_t{0});
  abi::set(mailbox_, f::port, static_cast<std::uint8_t>(c.port));
  abi::set(mailbox_, f::qpn, c.qpn);
}

std::uint8_t* flow_request::add(std::uint16_t id, std::size_t bytes) {
  std::uint8_t* h = mailbox_ + bytes_;
  bytes_ += bytes;
  abi::set(h, f::header_words, static_cast<std::uint8_t>(bytes / 4));
  abi::set(h, f::header_id, id);
  return h;
}

void flow_request::add_destination(const mac_address& mac) {
  std::uint8_t* h = add(f::id_ethernet, f::ethernet_bytes);
  std::copy(mac.begin(), mac.end(), h + f::dmac);
  std::fill_n(h + f::dmac_mask, mac.size(), std::uint8_t{0xff});
}

void flow_request::add_group(const ibv_gid& gid) {
  std::uint8_t* h = add(f::id_ib, f::ib_bytes);
  std::copy_n(gid.raw, sizeof gid.raw, h + f::dgid);
  std::fill_n(h + f::dgid_mask, sizeof gid.raw, std::uint8_t{0xff});
}

/// What mlx4_ib leaves out of the Ethernet header (source address, EtherType) is compared here, as the program says.
int flow_request::add_header(const std::uint8_t* spec, std::size_t bytes) {
  ibv_flow_spec s{};
  std::memcpy(&s.hdr, spec, sizeof s.hdr);
  switch (s.hdr.type) {
    case IBV_FLOW_SPEC_ETH: {
      if (!read(s.eth, spec, bytes)) return -EINVAL;
      std::uint8_t* h = add(f::id_ethernet, f::ethernet_bytes);
      copy_field(h, f::dmac, s.eth.val.dst_mac);
      copy_field(h, f::dmac_mask, s.eth.mask.dst_mac);
      copy_field(h, f::smac, s.eth.val.src_mac);
      copy_field(h, f::smac_mask, s.eth.mask.src_mac);
      if (s.eth.mask.ether_type != 0) {
        if (s.eth.mask.ether_type != 0xffff) return -EINVAL;
        abi::set(h, f::ether_type_enable, 1);
        copy_field(h, f::ether_type.offset, s.eth.val.ether_type);
      }
      copy_field(h, f::vlan.offset, s.eth.val.vlan_tag);
      copy_field(h, f::vlan_mask.offset, s.eth.mask.vlan_tag);
      return 0;
    }
    case IBV_FLOW_SPEC_IPV4: {
      if (!read(s.ipv4, spec, bytes)) return -EINVAL;
      std::uint8_t* h = add(f::id_ipv4, f::ipv4_bytes);
      copy_field(h, f::source_ip.offset, s.ipv4.val.src_ip);
      copy_field(h, f::source_ip_mask.offset, s.ipv4.mask.src_ip);
      copy_field(h, f::destination_ip.offset, s.ipv4.val.dst_ip);
      copy_field(h, f::destination_ip_mask.offset, s.ipv4.mask.dst_ip);
      return 0;
    }
    case IBV_FLOW_SPEC_TCP:
    case IBV_FLOW_SPEC_UDP: {
      if (!read(s.tcp_udp, spec, bytes)) return -EINVAL;
      std::uint8_t* h = add(s.hdr.type == IBV_FLOW_SPEC_TCP ? f::id_tcp : f::id_udp, f::ports_bytes);
      copy_field(h, f::source_port.offset, s.tcp_udp.val.src_port);
      copy_field(h, f::source_port_mask.offset, s.tcp_udp.mask.src_port);
      copy_field(h, f::destination_port.offset, s.tcp_udp.val.dst_port);
      copy_field(h, f::destination_port_mask.offset, s.tcp_udp.mask.dst_port);
      return 0;
    }
    default:
      return -EINVAL;
  }
}

int flow_request::add_headers(const ibv_flow_attr& attr) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(&attr + 1);
  std::size_t left = attr.size > sizeof attr ? attr.size - sizeof attr : 0;
  if (attr.num_of_specs > most_headers) return -EINVAL;
  for (unsigned i = 0; i < attr.num_of_specs; ++i) {
    ibv_flow_spec s{};
    if (left < sizeof s.hdr) return -EINVAL;
    std::memcpy(&s.hdr, at, sizeof s.hdr);
    if (s.hdr.size < sizeof s.hdr || s.hdr.size > left) return -EINVAL;
    if (const int error = add_header(at, s.hdr.size)) return error;
    at += s.hdr.size;
    left -= s.hdr.size;
  }
  return 0;
}

}  // namespace rnic::host_driver
