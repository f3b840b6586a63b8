// SPDX-License-Identifier: Apache-2.0
#include "tlm/pcapng_source.h"

#include <algorithm>
#include <cstring>

namespace rnic::tlm {

namespace {

enum block : std::uint32_t { interface_description = 1, packet_block = 2, simple_packet = 3, enhanced_packet = 6 };
enum code : unsigned { if_tsresol = 9, if_fcslen = 13, if_tsoffset = 14, epb_flags = 2 };

constexpr std::uint32_t byte_order = 0x1a2b3c4d, byte_order_swapped = 0x4d3c2b1a;
constexpr std::uint32_t least_block = 12, longest_block = 16u << 20;  // as libpcap's
constexpr std::size_t enhanced_header = 20, interface_header = 8, section_header = 16;
constexpr unsigned ns_digits = 9;
constexpr std::uint64_t ns_per_s = 1'000'000'000;
constexpr std::uint64_t latest_ns = ~std::uint64_t{0} >> 1;

constexpr std::uint32_t swap(std::uint32_t v) { return v >> 24 | (v >> 8 & 0xff00) | (v << 8 & 0xff'0000) | v << 24; }

std::uint64_t times(std::uint64_t a, std::uint64_t b) { return b != 0 && a > latest_ns / b ? latest_ns : a * b; }

}  // namespace

bool pcapng_source::fail(const std::string& why) {
  reason_ = "block at byte " + std::to_string(block_at_) + ": " + why;
  return false;
}

bool pcapng_source::take(void* to, std::size_t bytes) {
  const std::size_t got = std::fread(to, 1, bytes, file_.get());
  offset_ += got;
  return got == bytes || fail(std::ferror(file_.get()) != 0 ? "cannot be read" : "the file ends in the middle of it");
}

std::uint16_t pcapng_source::u16(std::size_t at) const {
  return static_cast<std::uint16_t>(swapped_ ? body_[at] << 8 | body_[at + 1] : body_[at + 1] << 8 | body_[at]);
}

std::uint32_t pcapng_source::u32(std::size_t at) const {
  std::uint32_t v = 0;
  std::memcpy(&v, body_.data() + at, sizeof v);
  return swapped_ ? swap(v) : v;
}

/// The byte order magic says how the section's numbers are to be read, the length before it included.
bool pcapng_source::read_section_header() {
  std::uint32_t magic = 0;
  std::memcpy(&magic, body_.data(), sizeof magic);
  if (magic != byte_order && magic != byte_order_swapped) return fail("no byte order magic in the section header");
  swapped_ = magic == byte_order_swapped;
  earlier_interfaces_ += static_cast<std::uint32_t>(interfaces_.size());
  interfaces_.clear();
  return true;
}

/// Reads type and body of the next block. False: the end, or damaged.
bool pcapng_source::read_block() {
  block_at_ = offset_;
  std::uint32_t start[2];
  const std::size_t got = std::fread(start, 1, sizeof start, file_.get());
  offset_ += got;
  if (got == 0 && std::ferror(file_.get()) == 0) return false;
  if (got != sizeof start)
    return fail(std::ferror(file_.get()) != 0 ? "cannot be read" : "the file ends in the middle of it");
  std::size_t have = 0;
  const bool section = start[0] == section_block;
  if (section) {
    body_.resize(sizeof(std::uint32_t));
    if (!take(body_.data(), have = sizeof(std::uint32_t)) || !read_section_header()) return false;
  }
  type_ = swapped_ ? swap(start[0]) : start[0];
  const std::uint32_t length = swapped_ ? swap(start[1]) : start[1];
  if (length < least_block + have || length > longest_block || length % 4 != 0)
    return fail("its length is " + std::to_string(length));
  body_.resize(length - least_block);
  if (!take(body_.data() + have, body_.size() - have)) return false;
  std::uint32_t again = 0;
  if (!take(&again, sizeof again)) return false;
  if (again != start[1]) return fail("its two lengths differ");
  return !section || body_.size() >= section_header || fail("is too short");
}

bool pcapng_source::find_option(std::size_t from, unsigned code, std::size_t least, option& out) const {
  while (from + 4 <= body_.size()) {
    const unsigned here = u16(from);
    const std::size_t length = u16(from + 2);
    if (here == 0 || length > body_.size() - from - 4) return false;
    if (here == code && length >= least) {
      out = {body_.data() + from + 4, length};
      return true;
    }
    from += 4 + (length + 3) / 4 * 4;
  }
  return false;
}

bool pcapng_source::add_interface() {
  if (body_.size() < interface_header) return fail("an interface without a link type");
  interface i;
  i.link_type = u16(0);
  i.snapshot = u32(4);
  option o{};
  if (find_option(interface_header, if_tsresol, 1, o)) i.resolution = o.value[0];
  if (find_option(interface_header, if_fcslen, 1, o)) i.fcs_bytes = o.value[0];
  if (find_option(interface_header, if_tsoffset, sizeof i.offset_s, o)) {
    const auto at = static_cast<std::size_t>(o.value - body_.data());
    const std::uint64_t low = u32(swapped_ ? at + 4 : at), high = u32(swapped_ ? at : at + 4);
    i.offset_s = static_cast<std::int64_t>(high << 32 | low);
  }
  interfaces_.push_back(i);
  return true;
}

/// Ends at the latest time that there is; an offset into the time before 1970 ends at 0.
std::uint64_t pcapng_source::nanoseconds(const interface& i, std::uint64_t units) {
  std::uint64_t ns = 0;
  unsigned power = i.resolution & 0x7fu;
  if ((i.resolution & 0x80) == 0) {
    ns = units;
    for (; power > ns_digits && ns != 0; --power) ns /= 10;
    for (ns = std::min(ns, latest_ns); power < ns_digits; ++power) ns = times(ns, 10);
  } else if (power < 64) {
    constexpr unsigned enough = 34;  // bits below a second whose product with 10^9 fits 64 bits
    std::uint64_t part = units & ((std::uint64_t{1} << power) - 1);
    const std::uint64_t seconds = units >> power;
    if (power > enough) part >>= power - enough, power = enough;
    ns = std::min(latest_ns, times(seconds, ns_per_s) + (part * ns_per_s >> power));
  }
  if (i.offset_s >= 0) return std::min(latest_ns, ns + times(static_cast<std::uint64_t>(i.offset_s), ns_per_s));
  const std::uint64_t back = times(~static_cast<std::uint64_t>(i.offset_s) + 1, ns_per_s);
  return ns > back ? ns - back : 0;
}

/// Packets with a time: enhanced, and the obsolete kind, whose interface has 16 bits.
bool pcapng_source::take_packet(stored_packet& out, std::size_t header) {
  if (body_.size() < header) return fail("a packet without a header");
  const std::uint32_t number = type_ == enhanced_packet ? u32(0) : u16(0);
  if (number >= interfaces_.size()) return fail("a packet of an interface that is not described");
  const interface& i = interfaces_[number];
  out.length = u32(12);
  if (out.length > body_.size() - header) return fail("a packet that is longer than its block");
  out.data = body_.data() + header;
  out.wire_length = std::max(out.length, u32(16));
  last_ns_ = out.time_ns = nanoseconds(i, std::uint64_t{u32(4)} << 32 | u32(8));
  out.interface = earlier_interfaces_ + number;
  out.link_type = i.link_type;
  out.fcs_bytes = i.fcs_bytes;
  option flags{};
  if (find_option(header + (std::size_t{out.length} + 3) / 4 * 4, epb_flags, 4, flags)) {
    const unsigned fcs = u32(static_cast<std::size_t>(flags.value - body_.data())) >> 5 & 0xf;
    if (fcs != 0) out.fcs_bytes = fcs;
  }
  return true;
}

bool pcapng_source::take_simple(stored_packet& out) {
  if (body_.size() < 4) return fail("a packet without a header");
  if (interfaces_.empty()) return fail("a packet of an interface that is not described");
  const interface& i = interfaces_.front();
  out.wire_length = u32(0);
  const std::uint32_t most = i.snapshot == 0 ? out.wire_length : std::min(out.wire_length, i.snapshot);
  out.length = std::min(most, static_cast<std::uint32_t>(body_.size() - 4));
  out.data = body_.data() + 4;
  out.time_ns = last_ns_;
  out.interface = earlier_interfaces_;
  out.link_type = i.link_type;
  out.fcs_bytes = i.fcs_bytes;
  return true;
}

capture_source_if::result pcapng_source::next(stored_packet& out) {
  while (reason_.empty() && read_block()) {
    switch (type_) {
      case interface_description:
        if (!add_interface()) return result::damaged;
        break;
      case packet_block:
      case enhanced_packet:
        return take_packet(out, enhanced_header) ? result::packet : result::damaged;
      case simple_packet:
        return take_simple(out) ? result::packet : result::damaged;
      default:  // names, statistics, secrets and what is yet to come
        break;
    }
  }
  return reason_.empty() ? result::end : result::damaged;
}

}  // namespace rnic::tlm
