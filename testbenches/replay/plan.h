// SPDX-License-Identifier: Apache-2.0
// What a capture tells about the hosts, queue pairs, memory and messages in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/sim/types.h"
#include "model/wire/packet.h"
#include "testbenches/replay/both_ends.h"
#include "testbenches/replay/frame_notes.h"

namespace rnic::replay {

/// Packets in a row that the capture may lack of a connection; more are another connection's beginning.
constexpr std::int32_t widest_gap = 65536;
constexpr std::size_t no_frame = ~std::size_t{0};

/// A frame of the capture. `roce` frames have their headers decoded and a right ICRC.
struct captured_frame {
  sim::time_ps at = 0;              ///< since the first frame
  std::vector<std::uint8_t> bytes;  ///< as far as the file has them
  std::uint32_t wire_length = 0;    ///< from DMAC, without FCS
  bool cut = false;                 ///< longer on the wire than in the file
  bool wrong_fcs = false;
  bool roce = false;
  bool new_icrc = false;  ///< that of the wire is not in the file: the injected frame gets one of its own
  wire::packet packet;
  int connection = -1;  ///< index into plan::connections; negative: not replayed
  bool from_held = false;
  bool repeated = false;     ///< a request whose PSN the same host has sent before
  bool asked_again = false;  ///< such a one of the held host, because its peer asked for it by NAK
  /// A NAK of the peer: the last request that the held host had sent before this reached it; no_frame: none.
  std::size_t crosses = no_frame;

  /// Bytes of the payload that the file has.
  std::uint32_t known_payload() const;
};
/// The whole frame: zeros stand for what the file lacks.
std::vector<std::uint8_t> bytes_on_wire(const captured_frame& f);

/// A part of a message's payload that a frame holds.
struct message_piece {
  std::uint64_t offset = 0;
  std::size_t frame = 0;  ///< index in the capture
};

/// A message that the held host sent: becomes a work request.
struct held_message {
  std::size_t first_frame = 0;                             ///< index in the capture
  wire::operation operation = wire::operation::send_only;  ///< send_only, write_only, read_request or an atomic
  std::uint32_t first_psn = 0;
  std::uint64_t length = 0;  ///< of the payload; what no piece holds is zeros
  std::vector<message_piece> pieces;
  wire::reth reth;
  wire::atomic_eth atomic;
  std::uint32_t srqn = 0;  ///< XRC: the peer's shared receive queue
  std::uint32_t immediate = 0;
  bool has_immediate = false;
  bool solicited = false;
  std::uint32_t invalidated = 0;  ///< with `invalidates`: the peer's key that the SEND ends
  bool invalidates = false;
  bool masked = false;    ///< an atomic with masks, of this model's own encoding
  bool stand_in = false;  ///< for packets that the capture lacks
};

/// A receive of the held host that is not as the others: the capture shows that it came late or did not suffice.
struct receive_rule {
  std::uint32_t srqn = 0;        ///< XRC: the shared receive queue that has it
  std::uint64_t number = 0;      ///< in the order of the messages that take one there, from 0
  std::size_t after = no_frame;  ///< posted once this frame, the last RNR NAK, has been sent
  bool short_of = false;         ///< it has `bytes` only
  bool bad_key = false;          ///< its memory cannot be used behind the first `bytes`
  std::uint32_t bytes = 0;
};

/// Receives of the held host that its peer's messages take.
struct taken_receives {
  std::uint64_t count = 0;
  std::uint32_t largest = 0;        ///< bytes
  std::vector<receive_rule> rules;  ///< by number
};

/// What the held host's queue pair offers, and for how long it waits.
struct queue_pair_terms {
  std::uint8_t rnr_timer = 12;   ///< code of 9.7.5.2.8 in its RNR NAKs
  std::uint8_t rnr_retries = 7;  ///< after so many of the peer's it gave up; 7: never
  bool may_read = true, may_write = true, may_atomic = true;
};

/// NAKs that ended a connection.
struct refusals_of {
  std::size_t by_held = no_frame, by_peer = no_frame;  ///< by_peer: also its last RNR NAK, when retries were used up
};

/// XRC only. Its queue pairs are one half of a connection: the one that asks, or the one that answers.
struct xrc_half {
  bool held_asks = false;
  std::set<std::uint32_t> srqns;  ///< shared receive queues of the held host that its peer could name
};

/// Datagrams only: Q_Keys of those that came, and the groups in which it must be.
struct datagram_facts {
  std::map<std::uint32_t, std::uint64_t> qkeys;  ///< -> datagrams
  std::set<wire::gid> groups;
};

/// One queue pair of the held host and its peer.
struct connection {
  wire::packet first_from_peer, first_from_held;  ///< headers as examples of addresses, TTL, source port
  bool seen_from_peer = false, seen_from_held = false;
  wire::gid held_gid{}, peer_gid{};
  wire::mac_address held_mac{}, peer_mac{};
  wire::encapsulation encap = wire::encapsulation::roce_v2_ipv4;
  wire::transport service = wire::transport::rc;
  std::uint32_t held_qpn = 0, peer_qpn = 0;
  bool held_qpn_known = true, peer_qpn_known = true;  ///< false: no packet names it, and it was made up
  std::uint32_t mtu = 1024;
  bool mtu_known = false;            ///< a packet shows it that is not the last one of its message
  std::uint32_t held_start_psn = 0;  ///< of the held host's first request
  std::uint32_t peer_start_psn = 0;  ///< of the peer's first request
  taken_receives receives;
  queue_pair_terms terms;
  refusals_of refusals;
  xrc_half xrc;
  datagram_facts datagrams;
  std::uint64_t deliveries = 0;    ///< whole messages of the peer that end in a receive
  int before = -1;                 ///< the connection that had its queue pair number before it, -1: none
  std::vector<std::size_t> order;  ///< its frames, plan::frame() indices, as they are re-enacted
  std::vector<held_message> messages;
  bool budget_spent = false;  ///< messages after these would have taken more zeros than there may be
};

/// Memory of the held host that the peer reads or writes: [begin, last]. Regions whose keys have the same place in a
/// table of keys, or are the same, are there one after the other.
struct held_region {
  std::uint32_t rkey = 0;
  std::uint64_t begin = 0, last = 0;
  bool read = true, write = true, atomic = true;  ///< what it may be used for
  bool late = false;                              ///< not there at the beginning: see plan::installed
  bool returns = false;                           ///< another one has its place in between
  bool invalidated = false;                       ///< a SEND of the peer ends its key
};
constexpr unsigned log_key_places = 17;
/// Where the adapter has what it knows of a key: keys that differ in their low byte only have the same place.
constexpr std::uint32_t place_of_key(std::uint32_t key) { return key >> 8 & ((1u << log_key_places) - 1); }

/// A region comes to be when what had its place is not needed any more.
struct installation {
  std::size_t region = 0;          ///< index in plan::regions
  std::size_t behind = no_frame;   ///< the last request that used what had its place
  std::size_t settled = no_frame;  ///< the held host's answer to that
};

/// What the held host's memory held when the peer's READ or atomic came: from the answers that the held host gave.
struct memory_content {
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::size_t answer = 0;   ///< index of the frame whose payload it is, or
  bool is_counter = false;  ///< this value
  std::uint64_t counter = 0;
};

/// What a replay makes up at most, so that a small capture does not ask for much memory.
struct plan_limits {
  std::uint64_t zeros = 256u << 20;  ///< bytes of messages that the capture lacks, over all connections
};

struct plan {
  std::vector<captured_frame> frames;
  std::map<std::string, std::uint64_t> rejected;  ///< by reason
  std::map<std::string, std::uint64_t> remarks;   ///< what was made up or left out, and how often
  std::uint64_t roce_frames = 0;
  frame_notes notes;
  both_ends ends;
  bool shortened = false;     ///< pauses of more than an hour, or what lies behind eight hours, take less time
  bool stepped_back = false;  ///< the capture's clock: such frames are taken as simultaneous with the one before
  std::string held;           ///< address of the held host; empty without any RoCE
  std::vector<wire::gid> held_gids;
  wire::mac_address held_mac{};
  std::vector<connection> connections;
  std::vector<held_region> regions;
  std::map<std::size_t, std::vector<memory_content>> contents;  ///< by the index of the request
  std::set<std::size_t>
      contradictions;  ///< answers of READs with other bytes than WRITEs had left; see find_contradictions
  std::map<std::size_t, std::uint32_t> revoked;   ///< by the index of a request: a key that ends before it
  std::map<std::uint32_t, std::uint64_t> srqs;    ///< of the held host (XRC): receives that were taken from each
  std::map<std::size_t, installation> installed;  ///< by the index of a request: the region that it is the first to use
  std::vector<captured_frame> made_up;            ///< packets of the peer that the capture lacks
  std::uint64_t zeros_left = 0;
  std::set<std::uint32_t> keys;  ///< that the capture names, and
  std::uint32_t invented_key = 0xe5000000;

  /// A frame of the capture, or behind those one that was made up.
  const captured_frame& frame(std::size_t index) const {
    return index < frames.size() ? frames[index] : made_up[index - frames.size()];
  }
};

/// Reads the whole capture. `hold`: IPv4, IPv6 or MAC address, or empty for the host that mostly answers.
/// Throws usage_error when the file is no capture, holds no frame, or nobody in it has the address `hold`,
/// and when a second capture has nothing in common with it.
plan make_plan(const std::string& capture, const std::string& hold, const reading_options& reading = {},
               const plan_limits& limits = {});

}  // namespace rnic::replay
