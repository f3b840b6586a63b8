// SPDX-License-Identifier: Apache-2.0
#include "testbenches/replay/frames.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "model/wire/icrc.h"
#include "model/wire/pause.h"
#include "testbenches/bench/usage_error.h"
#include "testbenches/replay/copies.h"
#include "testbenches/replay/link_addresses.h"
#include "tlm/capture.h"
#include "tlm/link_header.h"

namespace rnic::replay {

namespace {

constexpr std::uint64_t longest_gap_ns = 3'600'000'000'000;          // between two frames: an hour
constexpr sim::time_ps longest_capture = 8 * 3'600 * sim::ps_per_s;  // more than clocks of odd rates count exactly

constexpr std::size_t tag_at = 12, tag_bytes = 4, ipv4_header = 20, ipv4_checksum_at = 10;
constexpr unsigned customer_tag = 0x8100;
constexpr unsigned service_tags[] = {0x88a8, 0x9100, 0x9200};  // 802.1ad, and what came before it

/// Reads a file into a plan.
class file_reading {
 public:
  file_reading(const std::string& capture, const reading_options& options, plan& out)
      : capture_(capture), options_(options), out_(out) {}
  void read();

 private:
  bool keep(const tlm::captured_frame& f);
  void pass_time(std::uint64_t time_ns);
  void strip_outer_tags(captured_frame& f);
  void classify(captured_frame& f);
  wire::decode_error decode(captured_frame& f);

  const std::string& capture_;
  const reading_options& options_;
  plan& out_;
  std::vector<frame_origin> origins_;
  std::set<std::uint32_t> interfaces_;
  std::map<int, std::uint64_t> not_read_;  // link type -> frames
  std::uint64_t last_ns_ = 0;
  sim::time_ps at_ = 0;
};

/// Clocks that step back do not make time run back, and those that leap do not make it run for years.
void file_reading::pass_time(std::uint64_t time_ns) {
  if (out_.frames.empty()) out_.notes.start_ns = last_ns_ = time_ns;
  if (time_ns > last_ns_) {
    const std::uint64_t gap = std::min(time_ns - last_ns_, longest_gap_ns);
    out_.shortened = out_.shortened || gap != time_ns - last_ns_ || at_ + gap * sim::ps_per_ns > longest_capture;
    at_ = std::min(longest_capture, at_ + gap * sim::ps_per_ns);
  } else if (time_ns < last_ns_) {
    out_.stepped_back = true;
  }
  last_ns_ = time_ns;
}

bool file_reading::keep(const tlm::captured_frame& f) {
  pass_time(f.time_ns);
  captured_frame kept;
  kept.at = at_;
  kept.bytes.assign(f.data, f.data + f.length);
  kept.wire_length = f.wire_length;
  kept.cut = f.length < f.wire_length;
  kept.wrong_fcs = f.wrong_fcs;
  out_.notes.cooked += f.link == tlm::frame_link::cooked ? 1 : 0;
  out_.notes.ip += f.link == tlm::frame_link::ip ? 1 : 0;
  interfaces_.insert(f.interface);
  frame_origin o;
  o.interface = f.interface;
  o.way = f.way;
  o.no_source = f.no_source;
  o.no_destination = f.no_destination;
  o.read = f.link != tlm::frame_link::other;
  if (!o.read) ++not_read_[f.link_type];
  out_.frames.push_back(std::move(kept));
  origins_.push_back(o);
  return o.read;
}

/// All frames of the file; a file that breaks off gives what it had.
void file_reading::read() try {
  tlm::capture_reader reader(capture_);
  tlm::captured_frame f;
  bool any = false;
  for (;;) {
    const tlm::capture_reader::result r = reader.next(f);
    if (r == tlm::capture_reader::result::end) break;
    if (r == tlm::capture_reader::result::damaged) {
      ++out_.rejected["file damaged"];
      out_.notes.damage = reader.reason();
      break;
    }
    any = keep(f) || any;
  }
  if (out_.frames.empty())
    throw usage_error(out_.notes.damage.empty() ? capture_ + ": holds no frame" : out_.notes.damage);
  if (!any)
    throw usage_error(capture_ + ": link type is " + tlm::link_type_name(not_read_.begin()->first) +
                      ", expected Ethernet, Linux cooked or raw IP");
  out_.notes.interfaces = interfaces_.size();
  for (const auto& [type, count] : not_read_)
    out_.rejected["link type not read: " + tlm::link_type_name(type)] += count;
  for (std::size_t i = 0; i < out_.frames.size(); ++i) {
    if (!origins_[i].read) continue;
    strip_outer_tags(out_.frames[i]);
    classify(out_.frames[i]);
  }
  give_link_addresses(out_, origins_);
  drop_copies(out_, origins_);
  out_.roce_frames = static_cast<std::uint64_t>(
      std::count_if(out_.frames.begin(), out_.frames.end(), [](const captured_frame& x) { return x.roce; }));
} catch (const tlm::capture_error& e) {
  throw usage_error(e.what());
}

/// The headers of a frame whose end the file lacks, when it has all of them.
bool decode_cut(captured_frame& f) {
  std::vector<std::uint8_t> whole = f.bytes;
  whole.resize(f.wire_length);
  wire::packet p;
  if (wire::decode(whole.data(), whole.size(), p) != wire::decode_error::none) return false;
  if (p.payload_offset > f.bytes.size()) return false;
  f.packet = p;
  return f.roce = f.new_icrc = true;
}

/// The adapter takes one tag, a customer's; those around it belong to the network that carried the frame.
void file_reading::strip_outer_tags(captured_frame& f) {
  std::size_t tags = 0;
  bool last_is_customers = false;
  for (std::size_t at = tag_at; at + tag_bytes + 2 <= f.bytes.size(); at += tag_bytes, ++tags) {
    const unsigned type = unsigned{f.bytes[at]} << 8 | f.bytes[at + 1];
    const bool service = std::find(std::begin(service_tags), std::end(service_tags), type) != std::end(service_tags);
    if (type != customer_tag && !service) break;
    last_is_customers = !service;
  }
  const std::size_t outer = tags - (last_is_customers ? 1 : 0);
  if (outer == 0) return;
  f.bytes.erase(f.bytes.begin() + tag_at, f.bytes.begin() + tag_at + static_cast<std::ptrdiff_t>(outer * tag_bytes));
  f.wire_length -= static_cast<std::uint32_t>(outer * tag_bytes);
  ++out_.notes.outer_tags;
}

void set_checksum(std::uint8_t* ip) {
  ip[ipv4_checksum_at] = ip[ipv4_checksum_at + 1] = 0;
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < ipv4_header; i += 2) sum += std::uint32_t{ip[i]} << 8 | ip[i + 1];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  ip[ipv4_checksum_at] = static_cast<std::uint8_t>(~sum >> 8);
  ip[ipv4_checksum_at + 1] = static_cast<std::uint8_t>(~sum);
}

wire::decode_error file_reading::decode(captured_frame& f) {
  wire::decode_error error = wire::decode(f.bytes.data(), f.bytes.size(), f.packet);
  if (error != wire::decode_error::bad_ip_checksum || !options_.ignore_icrc) return error;
  const std::size_t at = f.bytes[tag_at] == customer_tag >> 8 && f.bytes[tag_at + 1] == (customer_tag & 0xff)
                             ? tag_at + tag_bytes + 2
                             : tag_at + 2;
  const std::vector<std::uint8_t> original = f.bytes;
  set_checksum(f.bytes.data() + at);  // decode has seen a whole IPv4 header there
  error = wire::decode(f.bytes.data(), f.bytes.size(), f.packet);
  if (error == wire::decode_error::none)
    ++out_.notes.checksum_made_new;
  else
    f.bytes = original;
  return error;
}

void file_reading::classify(captured_frame& f) {
  if (f.wrong_fcs) {
    ++out_.rejected["wrong FCS"];
    return;
  }
  if (std::max<std::size_t>(f.bytes.size(), f.wire_length) > payload::frame::capacity) {
    ++out_.rejected["longer than a port takes"];
    return;
  }
  if (f.cut) {
    if (decode_cut(f)) {
      ++out_.remarks["cut by the capture: the rest of the payload is taken as zeros, with an ICRC of its own"];
    } else {
      ++out_.rejected["cut by the capture"];
    }
    return;
  }
  const wire::decode_error error = decode(f);
  if (error != wire::decode_error::none) {
    wire::pause_frame pause;
    const bool control = wire::decode_pause(f.bytes.data(), f.bytes.size(), pause) != wire::pause_kind::none;
    ++out_.rejected[control ? "flow control" : wire::to_string(error)];
    return;
  }
  const std::uint32_t right = wire::icrc(f.bytes.data(), f.packet);
  if (right != f.packet.icrc) {
    if (!options_.ignore_icrc) {
      ++out_.rejected["bad icrc"];
      return;
    }
    f.packet.icrc = right;
    for (unsigned i = 0; i < 4; ++i) f.bytes[f.packet.icrc_offset + i] = static_cast<std::uint8_t>(right >> (8 * i));
    ++out_.notes.icrc_made_new;
  }
  f.roce = true;
}

}  // namespace

void read_frames(const std::string& capture, const reading_options& options, plan& out) {
  file_reading(capture, options, out).read();
}

}  // namespace rnic::replay
