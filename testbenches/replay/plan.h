// SPDX-License-Identifier: Apache-2.0
// What a capture tells about the hosts, queue pairs, memory and messages in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/sim/types.h"
#include "model/wire/packet.h"
#include "testbenches/replay/both_ends.h"
#include "testbenches/replay/frame_notes.h"

namespace rnic::replay {

/// A frame of the capture. `roce` frames have their headers decoded and a right ICRC.
struct captured_frame {
  sim::time_ps at = 0;  ///< since the first frame
  std::vector<std::uint8_t> bytes;
  bool cut = false;  ///< longer on the wire than in the file
  bool wrong_fcs = false;
  bool roce = false;
  wire::packet packet;
  int connection = -1;  ///< index into plan::connections; negative: not replayed
  bool from_held = false;
  bool repeated = false;  ///< a request whose PSN the same host has sent before
};

/// A message that the held host sent: becomes a work request.
struct held_message {
  std::size_t first_frame = 0;                             ///< index in the capture
  wire::operation operation = wire::operation::send_only;  ///< send_only, write_only, read_request or an atomic
  std::uint32_t first_psn = 0;
  std::vector<std::uint8_t> payload;
  wire::reth reth;
  wire::atomic_eth atomic;
  std::uint32_t immediate = 0;
  bool has_immediate = false;
  bool solicited = false;
  bool stand_in = false;  ///< for packets that the capture lacks
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
  std::uint32_t mtu = 1024;
  std::uint32_t held_start_psn = 0;  ///< of the held host's first request
  std::uint32_t peer_start_psn = 0;  ///< of the peer's first request
  std::uint64_t receives = 0;        ///< receive WQEs that the peer's messages take
  std::uint32_t largest_receive = 0;
  std::vector<held_message> messages;
};

/// Memory of the held host that the peer reads or writes.
struct held_region {
  std::uint32_t rkey = 0;
  std::uint64_t begin = 0, end = 0;
};

/// What the held host's memory held when the peer's READ or atomic came: from the answers that the held host gave.
struct memory_content {
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  std::vector<std::uint8_t> bytes;
};

struct plan {
  std::vector<captured_frame> frames;
  std::map<std::string, std::uint64_t> rejected;  ///< by reason
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
};

/// Reads the whole capture. `hold`: IPv4, IPv6 or MAC address, or empty for the host that mostly answers.
/// Throws usage_error when the file is no capture, holds no frame, or nobody in it has the address `hold`,
/// and when a second capture has nothing in common with it.
plan make_plan(const std::string& capture, const std::string& hold, const reading_options& reading = {});

}  // namespace rnic::replay
