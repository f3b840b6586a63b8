// SPDX-License-Identifier: Apache-2.0
#include "host_driver/cm/messages.h"

#include <algorithm>

#include "model/abi/endian.h"

namespace rnic::host_driver::cm {

namespace {

using abi::bits32;
using abi::bits8;
using abi::field;
using abi::get;
using abi::set;
using abi::u16;
using abi::u32;
using abi::u64;
using abi::u8;

constexpr std::uint8_t base_version = 1, class_cm = 0x07, class_version = 2, method_send = 3;

// Header common to all management datagrams, 24 bytes.
constexpr auto f_base = u8(0), f_class = u8(1), f_class_version = u8(2), f_method = u8(3);
constexpr auto f_transaction = u64(8);
constexpr auto f_attribute = u16(16);

// One function for each message lists its fields, from the start of the datagram (IBA volume 1, 12.6); a writer or a
// reader goes through it.

class writer {
 public:
  explicit writer(std::uint8_t* to) : to_(to) {}
  template <class T, class V>
  void operator()(field<T> f, const V& value) {
    set(to_, f, static_cast<T>(value));
  }
  template <std::size_t n>
  void operator()(std::size_t at, const std::array<std::uint8_t, n>& bytes, std::size_t count = n) {
    std::copy_n(bytes.begin(), count, to_ + at);
  }
  /// A field that follows from others.
  template <class T>
  void derived(field<T> f, unsigned value) {
    set(to_, f, static_cast<T>(value));
  }
  bool skips(const path_record& p) const { return !p.exists(); }

 private:
  std::uint8_t* to_;
};

class reader {
 public:
  explicit reader(const std::uint8_t* from) : from_(from) {}
  template <class T, class V>
  void operator()(field<T> f, V& value) {
    value = static_cast<V>(get(from_, f));
  }
  template <std::size_t n>
  void operator()(std::size_t at, std::array<std::uint8_t, n>& bytes, std::size_t count = n) {
    std::copy_n(from_ + at, count, bytes.begin());
  }
  template <class T>
  void derived(field<T>, unsigned) {}
  bool skips(const path_record&) const { return false; }

 private:
  const std::uint8_t* from_;
};

/// What paths in REQ and LAP have at the same places.
template <class Archive, class Path>
void path_ends(Archive& a, std::uint16_t at, Path& p) {
  constexpr unsigned permissive_lid = 0xffff;
  const bool one_subnet = p.hop_limit <= 1;
  a.derived(u16(at), one_subnet ? 0 : permissive_lid);
  a.derived(abi::at(at, u16(2)), one_subnet ? 0 : permissive_lid);
  a(at + 4u, p.local);
  a(at + 20u, p.remote);
  a(abi::at(at, bits32(36, 31, 12)), p.flow_label);
  a(abi::at(at, bits8(42, 7, 4)), p.service_level);
  a.derived(abi::at(at, bits8(42, 3, 3)), one_subnet ? 1 : 0);
  a(abi::at(at, bits8(43, 7, 3)), p.ack_timeout);
}

template <class Archive, class Path>
void request_path(Archive& a, std::uint16_t at, Path& p) {
  if (a.skips(p)) return;
  path_ends(a, at, p);
  a(abi::at(at, bits8(39, 5, 0)), p.rate);
  a(abi::at(at, u8(40)), p.traffic_class);
  a(abi::at(at, u8(41)), p.hop_limit);
}

template <class Archive, class Connection>
void request(Archive& a, Connection& c) {
  a(u64(32), c.service_id);
  a(u64(40), c.ca_guid);
  a(u32(52), c.qkey);
  a(bits32(56, 31, 8), c.qpn);
  a(u8(59), c.responder_resources);
  a(u8(63), c.initiator_depth);
  a(bits8(67, 7, 3), c.remote_cm_timeout);
  a(bits8(67, 2, 1), c.transport);
  a(bits8(67, 0, 0), c.flow_control);
  a(bits32(68, 31, 8), c.psn);
  a(bits8(71, 7, 3), c.local_cm_timeout);
  a(bits8(71, 2, 0), c.retry_count);
  a(u16(72), c.pkey);
  a(bits8(74, 7, 4), c.mtu_code);
  a(bits8(74, 2, 0), c.rnr_retry_count);
  a(bits8(75, 7, 4), c.max_cm_retries);
  a(bits8(75, 3, 3), c.shared_receive_queue);
  a(bits8(75, 2, 0), c.extended_transport);
  request_path(a, 76, c.path);
  request_path(a, 120, c.alternate);
}

template <class Archive, class Connection>
void reply(Archive& a, Connection& c) {
  a(u32(32), c.qkey);
  a(bits32(36, 31, 8), c.qpn);
  a(bits32(40, 31, 8), c.ee_context);
  a(bits32(44, 31, 8), c.psn);
  a(u8(48), c.responder_resources);
  a(u8(49), c.initiator_depth);
  a(bits8(50, 7, 3), c.target_ack_delay);
  a(bits8(50, 2, 1), c.alternate_taken);
  a(bits8(50, 0, 0), c.flow_control);
  a(bits8(51, 7, 5), c.rnr_retry_count);
  a(bits8(51, 4, 4), c.shared_receive_queue);
  a(u64(52), c.ca_guid);
}

/// Rate, traffic class and hop limit are in another order than in a REQ.
template <class Archive, class Contents>
void load_path(Archive& a, Contents& c) {
  a(bits32(36, 31, 8), c.remote_qpn);
  a(bits8(39, 7, 3), c.response_timeout);
  path_ends(a, 44, c.alternate);
  a(u8(83), c.alternate.traffic_class);
  a(u8(84), c.alternate.hop_limit);
  a(bits8(85, 5, 0), c.alternate.rate);
}

template <class Archive, class Service>
void service_request(Archive& a, Service& s) {
  a(u16(28), s.pkey);
  a(u64(32), s.service_id);
}

template <class Archive, class Service>
void service_reply(Archive& a, Service& s) {
  a(u8(28), s.status);
  a(bits32(32, 31, 8), s.qpn);
  a(u64(36), s.service_id);
  a(u32(44), s.qkey);
}

/// Who speaks of which connection.
template <class Archive, class Contents>
void numbers(Archive& a, Contents& c) {
  constexpr auto first = u32(24), second = u32(28);
  if (c.kind == message::sidr_rep) return a(first, c.remote_id);
  a(first, c.local_id);
  if (c.kind != message::req && c.kind != message::sidr_req) a(second, c.remote_id);
}

template <class Archive, class Contents>
void fields(Archive& a, Contents& c) {
  numbers(a, c);
  switch (c.kind) {
    case message::req:
      return request(a, c.connection);
    case message::rep:
      return reply(a, c.connection);
    case message::mra:
      a(bits8(32, 7, 6), c.subject);
      return a(bits8(33, 7, 3), c.service_timeout);
    case message::rej:
      a(bits8(32, 7, 6), c.subject);
      return a(u16(34), c.why);
    case message::dreq:
      return a(bits32(32, 31, 8), c.remote_qpn);
    case message::lap:
      return load_path(a, c);
    case message::apr:
      return a(u8(33), c.path_status);
    case message::sidr_req:
      return service_request(a, c.service);
    case message::sidr_rep:
      return service_reply(a, c.service);
    case message::rtu:
    case message::drep:
      return;
  }
}

struct room {
  std::size_t at, bytes;
};
room private_room(message kind) {
  switch (kind) {
    case message::req:
      return {164, 92};
    case message::mra:
      return {34, 222};
    case message::rej:
    case message::apr:
      return {108, 148};
    case message::rep:
      return {60, 196};
    case message::rtu:
    case message::drep:
      return {32, 224};
    case message::dreq:
      return {36, 220};
    case message::lap:
      return {88, 168};
    case message::sidr_req:
      return {40, 216};
    default:
      return {120, 136};
  }
}

template <class Archive, class Contents>
void all(Archive& a, Contents& c) {
  a(f_transaction, c.transaction);
  fields(a, c);
  const room r = private_room(c.kind);
  a(r.at, c.private_data, r.bytes);
}

bool known(std::uint16_t attribute) {
  return attribute >= static_cast<std::uint16_t>(message::req) && attribute <= static_cast<std::uint16_t>(message::apr);
}

}  // namespace

std::size_t private_bytes(message kind) { return private_room(kind).bytes; }

mad encode(const contents& c) {
  mad m{};
  set(m.data(), f_base, base_version);
  set(m.data(), f_class, class_cm);
  set(m.data(), f_class_version, class_version);
  set(m.data(), f_method, method_send);
  set(m.data(), f_attribute, static_cast<std::uint16_t>(c.kind));
  writer w(m.data());
  all(w, c);
  return m;
}

std::optional<contents> decode(const std::uint8_t* m, std::size_t length) {
  if (length != mad_length || get(m, f_base) != base_version || get(m, f_class) != class_cm ||
      get(m, f_class_version) != class_version || get(m, f_method) != method_send || !known(get(m, f_attribute)))
    return std::nullopt;
  contents c;
  c.kind = static_cast<message>(get(m, f_attribute));
  reader r(m);
  all(r, c);
  return c;
}

namespace {
constexpr auto ip_version = bits8(1, 7, 4);
constexpr auto ip_port = u16(2);
constexpr std::size_t ip_source = 4, ip_destination = 20, ipv4_at = 12;
constexpr gid_bytes mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};

gid_bytes address_at(const std::uint8_t* from, bool v4) {
  gid_bytes g = mapped;
  const std::size_t skip = v4 ? ipv4_at : 0;
  std::copy(from + skip, from + g.size(), g.begin() + static_cast<std::ptrdiff_t>(skip));
  return g;
}
}  // namespace

void put_ip_header(const ip_header& h, std::uint8_t* to) {
  const bool v4 = is_ipv4(h.destination);
  std::fill_n(to, ip_header::bytes, std::uint8_t{0});
  set(to, ip_version, v4 ? 4 : 6);
  set(to, ip_port, h.source_port);
  const std::size_t skip = v4 ? ipv4_at : 0;
  std::copy(h.source.begin() + static_cast<std::ptrdiff_t>(skip), h.source.end(), to + ip_source + skip);
  std::copy(h.destination.begin() + static_cast<std::ptrdiff_t>(skip), h.destination.end(), to + ip_destination + skip);
}

std::optional<ip_header> get_ip_header(const std::uint8_t* from) {
  const std::uint8_t version = get(from, ip_version);
  if (from[0] != 0 || (version != 4 && version != 6)) return std::nullopt;
  ip_header h;
  h.source_port = get(from, ip_port);
  h.source = address_at(from + ip_source, version == 4);
  h.destination = address_at(from + ip_destination, version == 4);
  return h;
}

}  // namespace rnic::host_driver::cm
