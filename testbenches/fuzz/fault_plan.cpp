// SPDX-License-Identifier: Apache-2.0
// Any text as a fault plan: a plan that can be followed, or one line that says what is wrong.
#include "model/fabric/fault_plan.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/fabric/fault_injector.h"
#include "model/sim/check.h"
#include "model/sim/clock_domain.h"
#include "model/sim/statistics.h"
#include "model/sim/timebase.h"
#include "model/wire/ethernet.h"
#include "model/wire/icrc.h"
#include "testbenches/fuzz/property.h"

namespace rnic::fuzz {
namespace {

struct sink final : payload::frame_sink_if {
  void deliver(payload::frame_ptr f, sim::time_ps) override { bytes += f->length; }
  std::uint64_t bytes = 0;
};

/// Some frames of a message and its answers, and one that is not RoCE.
std::vector<payload::frame_ptr> make_frames(payload::frame_pool& pool) {
  std::vector<payload::frame_ptr> all;
  const std::pair<std::uint8_t, std::uint32_t> kinds[] = {{0x06, 256}, {0x08, 5}, {0x04, 0}, {0x0c, 0},
                                                          {0x10, 256}, {0x11, 0}, {0x13, 0}, {0x81, 16}};
  std::uint32_t psn = 0xfffffe;
  for (const auto& [opcode, payload] : kinds) {
    payload::frame_ptr f = pool.get();
    wire::packet& p = f->packet;
    p = {};
    p.encap = psn % 2 != 0 ? wire::encapsulation::roce_v1 : wire::encapsulation::roce_v2_ipv4;
    p.sgid = wire::gid_from_ipv4(0x0a000001);
    p.dgid = wire::gid_from_ipv4(0x0a000002);
    p.bth.opcode = opcode;
    p.bth.dest_qp = 0x48;
    p.bth.psn = wire::psn_t(psn++ & 0xffffff);
    p.payload_length = payload;
    const std::uint8_t* const first = wire::build(p, f->buffer.data() + payload::frame::payload_start);
    f->begin = static_cast<std::uint32_t>(first - f->buffer.data());
    f->length = p.icrc_offset + 4;
    f->fcs = wire::ethernet_fcs(f->data(), f->length);
    all.push_back(std::move(f));
  }
  payload::frame_ptr plain = pool.get();
  plain->length = 60;
  std::fill_n(plain->data(), plain->length, std::uint8_t{0x42});
  all.push_back(std::move(plain));
  return all;
}

/// Every frame goes through once in each direction; what is held back stays, as no simulated time passes.
void follow(const fabric::fault_plan& plan) {
  static sim::timebase base;  // a part of the kernel, of which a process has one
  static sim::clock_domain clock("clock", base, {});
  sim::statistics statistics;
  payload::frame_pool pool;
  sink ends[2];
  {
    fabric::fault_injector injector("faults", clock, plan, 1, pool, statistics);
    for (unsigned from : {0u, 1u}) {
      injector.connect(from, ends[from]);
      sim::time_ps at = 0;
      for (payload::frame_ptr& f : make_frames(pool)) injector.enter(from, std::move(f), at += 1000 * sim::ps_per_us);
      demand(injector.counted(from).frames == 9, "every frame is counted");
    }
  }
  demand(pool.in_use() == 0, "no frame stays when the injector is gone");
}

}  // namespace
}  // namespace rnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    rnic::fuzz::follow(rnic::fabric::parse_fault_plan(std::string(data, data + size), "plan"));
  } catch (const rnic::sim::config_error& e) {
    rnic::fuzz::demand_one_line(e.what());
  }
  return 0;
}
