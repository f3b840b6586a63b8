// SPDX-License-Identifier: Apache-2.0
// Receive parser of one port: from bytes to headers, from headers to who they are for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "model/gid/gid_match_if.h"
#include "model/gid/gid_table.h"
#include "model/payload/frame.h"
#include "model/payload/frame_stream.h"
#include "model/sim/clocked_block.h"
#include "model/sim/fifo.h"
#include "model/sim/memory_ports.h"
#include "model/sim/parameter.h"
#include "model/sim/ring.h"
#include "model/sim/server.h"
#include "model/sim/span.h"
#include "model/sim/statistics.h"

namespace rnic::parser {

/// Why a frame ended here.
enum class drop : std::uint8_t {
  bad_fcs,
  truncated,
  bad_ip_version,
  bad_ip_header_length,
  bad_ip_checksum,
  fragment,
  bad_length,
  bad_next_header,
  unknown_opcode,
  bad_pad,
  bad_version,
  not_our_mac,
  not_our_gid,
  wrong_vlan,
  ethernet_not_bound,
  count
};
const char* to_string(drop d);

/// Data sheet.
///
/// Decodes every received frame into frame.packet and sorts it: RoCE for one of our GIDs to roce_out (frame.gid_index
/// is the entry), anything that is not RoCE to ethernet_out, the rest is counted and dropped (adapter data plane A.9.1,
/// points 1 to 4). RoCE to a multicast GID passes with gid_index unset; who is member is decided behind. RoCE for
/// addresses that are not ours goes to ethernet_out too, where steering may know somebody who wants it (A.8.5), and so
/// do frames with a bad FCS, which the port lets through only when it was told to. Order of frames is kept.
///
/// Ports, each of one frame a cycle, cut-through: frames in from the port, beat by beat (payload::byte_at), and out to
/// icrc check and steering (payload::stream_out); what ends here, with the cycle in which it was taken.
///
/// Stages:
///
///   input      a frame is taken when its first beat is there and the one before has passed: bytes_per_cycle of it in
///              each cycle
///   parser     parser_cycles from the beat with the last byte of its headers: of RoCE for us the end of its transport
///              headers (packet.payload_offset), of others and of what is dropped byte 66, or the last one where it is
///              shorter (Ethernet, a tag, IPv6, UDP)
///   gid match  its own cycles (gid::gid_match_if), for all frames; those that are RoCE for a unicast GID look it up
///              and wait for the look-up before, by its interval. Others take the cycles of a hit at once. The VLAN of
///              the entry comes with the result; the destination MAC is compared with all valid ones of the port in
///              the stage before. Where firmware has said so (gid_table::takes_both_tables), a GID that is not found is
///              looked up in the other port's table behind that, cycles and intervals add up, and frame.gid_index is
///              entry + gid::table_size
///
/// Then its first byte leaves and the others follow, beat by beat, behind the last beat of the frame before, whichever
/// way that went. Inside are as many frames as stages, one of each cycle, and one more.
///
/// Order of the tests: FCS, length 14, RoCE or not (wire::decode), version of RoCE, destination MAC, what is wrong with
/// the headers, multicast, GID, VLAN (that of an entry that has one; untagged is 0), version of the BTH. An entry of a
/// table with virtual functions gives frame.function. "Not RoCE" and "not ours" end here where ethernet_out is not
/// bound, as do bad FCS and frames below 14 bytes.
///
/// Memories, read beside: the port's tables (gid::gid_table), by a port each for MACs and GIDs, and one of the other
/// port's for GIDs; a look-up of each a frame (memory `gid_table`: mac, gid, other_gid).
/// Approximation: what the tables have in the cycle in which a frame is taken counts, though its look-ups are some
/// cycles later; firmware that changes an entry in between is seen by the next frame.
///
/// Stalls: a full channel stalls all of it, and the MAC behind: the input is blocked by "icrc check" or "steering",
/// whose frame is the first, or by "pipeline" where that is not due yet.
///
/// Span marks: "parser", "gid match".
///
/// Counters: roce_frames, ethernet_frames, unclaimed_frames (those of RoCE among them), gid_match.look_ups, .hits (of
/// frames: a hit is an entry found; the second look-up counts as one more), drop.<why>.
class parser : public sim::clocked_block {
 public:
  struct config {
    /// Behind the last header byte.
    sim::parameter<unsigned> parser_cycles{
        2, {1, sim::many, "cycles", "calibration 5: of the RX pipeline's 60, what its headers do not take to come"}};
    unsigned bytes_per_cycle = 16;  ///< width of the datapath (adapter.datapath_bytes)
    /// Else RoCE v2 is UDP like any other. Its name is the port's (adapter.port.roce_v2).
    sim::parameter<bool> roce_v2{true, "adapter control plane 2.4: ROCE_V1_V2; false: RoCE v1 alone"};

    void list(sim::fields& are) { are("parser_cycles", parser_cycles); }
  };

  /// `match` is the port's, and this parser the only one that asks it. `roce_v2_port`: the register with the UDP
  /// destination port of RoCE v2, written by firmware.
  parser(std::string name, sim::clock_domain& domain, const config& cfg, const gid::gid_table& gids,
         gid::gid_match_if& match, const std::uint16_t& roce_v2_port, sim::span_recorder& spans,
         sim::statistics& stats);

  /// The other port's table, and a look-up port of it that this parser alone has.
  void also_look_up(const gid::gid_table& other, gid::gid_match_if& match) {
    other_ = &other;
    other_match_ = &match;
  }

  sim::fifo_in<payload::frame_ptr> mac_in;
  sim::fifo_out<payload::frame_ptr> roce_out;
  sim::fifo_out<payload::frame_ptr> ethernet_out;  ///< may stay unbound
  sim::fifo_out<payload::departure> departures;    ///< of frames that end here, from the port's ingress buffer; as well

  /// Look-ups of destination GIDs, and those that found an entry.
  struct match_counters {
    std::uint64_t look_ups = 0, hits = 0;
  };
  std::uint64_t dropped(drop why) const { return drops_[static_cast<unsigned>(why)]; }
  std::uint64_t roce_frames() const { return roce_frames_; }
  std::uint64_t unclaimed_frames() const { return unclaimed_frames_; }
  std::uint64_t ethernet_frames() const { return ethernet_frames_; }

 private:
  enum class way : std::uint8_t { roce, ethernet, nowhere };
  struct stage {
    payload::frame_ptr frame;
    sim::cycle_t ready = 0;
    way to = way::nowhere;
  };
  void tick() override;
  void deliver();
  void take();
  const char* held_up_by() const;
  sim::cycle_t match_cycles(sim::cycle_t parsed);
  void end(const payload::frame& f);
  way classify(payload::frame& f);
  way discard(drop why);
  way unclaimed(drop why);
  way plain_ethernet();
  const gid::entry* find(const wire::packet& p, std::uint16_t* index);

  config config_;
  const gid::gid_table& gids_;
  const std::uint16_t& roce_v2_port_;
  sim::span_recorder& spans_;
  gid::gid_match_if& match_;
  const gid::gid_table* other_ = nullptr;
  gid::gid_match_if* other_match_ = nullptr;
  enum user : unsigned { of_mac, of_gid, of_other_gid };
  sim::memory_ports table_{
      *this,
      "gid_table",
      sim::port_each{},
      {{"mac", sim::access_kind::read}, {"gid", sim::access_kind::read}, {"other_gid", sim::access_kind::read}}};
  sim::ring<stage> pipeline_;
  sim::server input_{*this, "input"};
  sim::server matching_{*this, "gid_match"};  // counts: it is ahead of its look-ups by the parser's cycles
  std::optional<gid::gid_match_if::result>
      looked_up_;                 // by the frame that is taken in this cycle; of both its look-ups
  sim::cycle_t match_free_ = 0;   // for the next look-up
  sim::cycle_t output_free_ = 0;  // behind the last beat of what has been taken
  sim::cycle_t blocked_to_ = 0;   // and of what has left late
  match_counters match_count_;
  std::array<std::uint64_t, static_cast<unsigned>(drop::count)> drops_{};
  std::uint64_t roce_frames_ = 0;
  std::uint64_t ethernet_frames_ = 0;
  std::uint64_t unclaimed_frames_ = 0;  // of these: RoCE for addresses that are not ours
};

}  // namespace rnic::parser
