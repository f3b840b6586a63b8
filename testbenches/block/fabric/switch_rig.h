// SPDX-License-Identifier: Apache-2.0
// A switch with plugs in its ports.
#pragma once

#include <cstring>
#include <memory>
#include <systemc>
#include <utility>
#include <vector>

#include "model/fabric/network_switch.h"
#include "model/sim/timebase.h"
#include "model/wire/bytes.h"
#include "model/wire/icrc.h"

namespace rnic::fabric::test {

inline constexpr std::uint32_t rate = 40'000;
inline constexpr sim::time_ps byte_ps = 200, hop = 250'000;
inline constexpr std::uint32_t overhead = 12, gap = 12;  // preamble and FCS

/// A connector that notes what arrives, with nothing but time between it and the switch.
struct plug final : payload::frame_sink_if {
  void deliver(payload::frame_ptr frame, sim::time_ps arrival) override { got.emplace_back(std::move(frame), arrival); }
  std::vector<std::pair<payload::frame_ptr, sim::time_ps>> got;
};

inline void put_address(std::uint8_t* to, unsigned host) {
  const std::uint8_t address[6] = {2, 0, 0, 0, 0, static_cast<std::uint8_t>(host)};
  std::memcpy(to, address, sizeof address);
}

struct rig {
  explicit rig(unsigned ports, switch_config c = {}) {
    if (c.ports.empty()) c.ports.assign(ports, {rate, 3, {}});
    middle = std::make_unique<network_switch>("switch", domain, c, pool, statistics);
    plugs.resize(ports);
    for (unsigned i = 0; i < ports; ++i) middle->port(i).attach(plugs[i]);
  }
  /// Untagged, or with a tag of this control field.
  payload::frame_ptr frame(unsigned from, unsigned to, std::uint32_t length, int tag = -1) {
    payload::frame_ptr f = pool.get();
    f->begin = payload::frame::payload_start;
    f->length = length;
    std::memset(f->data(), static_cast<int>(length), length);
    put_address(f->data(), to);
    put_address(f->data() + 6, from);
    wire::store_be16(f->data() + 12, 0x88b5);
    if (tag >= 0) {
      wire::store_be16(f->data() + 12, 0x8100);
      wire::store_be16(f->data() + 14, static_cast<std::uint16_t>(tag));
      wire::store_be16(f->data() + 16, 0x88b5);
    }
    f->fcs = wire::ethernet_fcs(f->data(), f->length);
    return f;
  }
  /// Its last bit comes at `last_bit` to port `at`.
  void deliver(unsigned at, payload::frame_ptr f, sim::time_ps last_bit) {
    f->stamp = last_bit - (f->length + overhead) * byte_ps;
    middle->port(at).receiver().deliver(std::move(f), last_bit);
  }
  void send(unsigned from, unsigned to, std::uint32_t length, sim::time_ps last_bit, int tag = -1) {
    deliver(from, frame(from, to, length, tag), last_bit);
  }
  void pause(unsigned from, const wire::pause_frame& p, sim::time_ps at, std::uint32_t damage = 0) {
    payload::frame_ptr f = pool.get();
    f->length = wire::pause_frame_length;
    wire::encode_pause(p, {2, 0, 0, 0, 0, static_cast<std::uint8_t>(from)}, f->data());
    f->fcs = wire::ethernet_fcs(f->data(), f->length) ^ damage;
    middle->port(from).receiver().deliver(std::move(f), at);
  }
  void pause(unsigned from, std::uint16_t quanta, sim::time_ps at, std::uint32_t damage = 0) {
    wire::pause_frame p;
    p.quanta[0] = quanta;
    pause(from, p, at, damage);
  }
  void run(sim::time_ps until) { sc_core::sc_start(sc_core::sc_time::from_value(until - base.now_ps())); }
  /// All addresses are known from now on, and the plugs empty.
  void teach() {
    for (unsigned i = 0; i < plugs.size(); ++i) send(i, 99, 60, base.now_ps() + 1'000'000);
    run(base.now_ps() + 5'000'000);
    for (plug& p : plugs) p.got.clear();
  }
  std::uint64_t counted(const std::string& counter) const { return statistics.value("switch." + counter); }

  sim::timebase base;
  sim::clock_domain domain{"domain", base, sim::clock_period{1000, 1, 0}};
  sim::statistics statistics;
  payload::frame_pool pool;
  std::unique_ptr<network_switch> middle;
  std::vector<plug> plugs;
};

}  // namespace rnic::fabric::test
