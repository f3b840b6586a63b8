// SPDX-License-Identifier: Apache-2.0
#include "model/adapter/profiles.h"

#include <algorithm>

#include "model/adapter/adapter_config.h"
#include "model/sim/check.h"

namespace rnic::adapter {

namespace {

/// One parameter of a profile.
struct setting {
  const char *path, *value, *source;
};

/// Calibration 5, column connectx5_100g. Interface and behaviour are those of the generation before: this is its
/// timing.
const setting connectx5_100g[] = {
    {"adapter.identity.device_id", "0x1017", "design: MT27800 family, vendor part 4119"},
    {"adapter.identity.vf_device_id", "0x1018", "design: MT27800 family, virtual function"},
    {"adapter.identity.firmware_major", "16", "design: 16.35.2000, of published runs with MT_0000000012"},
    {"adapter.identity.firmware_minor", "35", "design: 16.35.2000, of published runs with MT_0000000012"},
    {"adapter.identity.firmware_subminor", "2000", "design: 16.35.2000, of published runs with MT_0000000012"},
    {"adapter.shared_read_engine", "true", "calibration 5, connectx5_100g: Connect-IB 50 M/s of each against 88, 121"},
    {"adapter.read_engine.piece_cycles", "1", "design: the least; of its READs of more than 64 B nothing is published"},
    {"adapter.read_engine.bytes_per_cycle", "128", "design: two beats of the datapath a cycle, as at 40GbE"},
    {"adapter.clock_khz", "500000", "calibration 5: not published, chosen"},
    {"adapter.datapath_bytes", "64", "calibration 5: 512 bit"},
    {"adapter.port.rate_mbps", "100000", "design: 100GbE"},
    {"adapter.port.mac_tx_ns", "16", "calibration 5, connectx5_100g: a part of 45 ns"},
    {"adapter.port.pcs_tx_ns", "19", "calibration 5, connectx5_100g: a part of 45 ns"},
    {"adapter.port.pma_tx_ns", "10", "calibration 5, connectx5_100g: a part of 45 ns"},
    {"adapter.port.pma_rx_ns", "11", "calibration 5, connectx5_100g: a part of 60 ns without FEC"},
    {"adapter.port.pcs_rx_ns", "27", "calibration 5, connectx5_100g: a part of 60 ns without FEC"},
    {"adapter.port.mac_rx_ns", "22", "calibration 5, connectx5_100g: a part of 60 ns without FEC"},
    {"adapter.port.fec", "rs_528_514", "IEEE 802.3 clause 91: 100GBASE-CR4 and 100GBASE-SR4 have it"},
    {"adapter.port.ingress_bytes", "131072", "design: headroom at 100 Gb/s takes 49 KB of it"},
    {"adapter.pcie.generation", "3", "calibration 5, both columns: Gen3"},
    {"adapter.pcie.width", "16", "calibration 5: x16"},
    {"adapter.pcie.dll_efficiency_permille", "945", "calibration 5, both columns: 0.945"},
    {"adapter.pcie.tags", "256", "calibration 5: 256, at least 40 for 121 M/s"},
    {"adapter.pcie.reads_per_client", "64", "design: four times as many as with 32 tags"},
    {"adapter.doorbell.bf_line_cycles", "3", "calibration 5: 167 M lines/s; Connect-IB 80 M UD SENDs of two lines"},
    {"adapter.requester.processing_units", "8", "calibration 5: 8 to 16"},
    {"adapter.requester.translation_blocks", "false", "calibration 5: misses overlap"},
    {"adapter.requester.wqe_cycles", "38", "calibration 5: per-QP WQE service, 75 ns, chosen"},
    {"adapter.requester.read_wqe_cycles", "38", "calibration 5: per-QP WQE service, 75 ns, chosen"},
    {"adapter.requester.inline_cycles", "4", "calibration 5: TX engine, 125 M/s; ConnectX-4 130 M/s"},
    {"adapter.requester.empty_cycles", "3", "calibration 2.3: Connect-IB, datagrams without payload 157 M/s"},
    {"adapter.requester.descriptor_cycles", "2", "calibration 2.3: Connect-IB, 157 M/s in batches"},
    {"adapter.requester.gather_cycles", "6", "calibration 5: TX engine, 6 + L/64"},
    {"adapter.requester.miss_stall_cycles", "0", "calibration 5: misses overlap"},
    {"adapter.requester.read_request_cycles", "6", "calibration 5: 5.7; Connect-IB 88 M/s"},
    {"adapter.requester.read_response_cycles", "4", "calibration 5: RX engine, max(4.1, 2 + L/64)"},
    {"adapter.requester.continue_cycles", "2", "calibration 5: 2 + L/64"},
    {"adapter.requester.transmit.path_cycles", "11",
     "calibration 2.3: sum of TX and RX pipeline, fitted to SENDs of 32 B and 1 KB (K02), divided by design"},
    {"adapter.requester.transmit.header_cycles", "14",
     "calibration 2.3: sum of TX and RX pipeline, fitted to SENDs of 32 B and 1 KB (K02), divided by design"},
    {"adapter.requester.transmit.align_cycles", "14",
     "calibration 2.3: sum of TX and RX pipeline, fitted to SENDs of 32 B and 1 KB (K02), divided by design"},
    {"adapter.requester.transmit.hand_over_cycles", "14",
     "calibration 2.3: sum of TX and RX pipeline, fitted to SENDs of 32 B and 1 KB (K02), divided by design"},
    {"adapter.requester.response.context_cycles", "8", "calibration 5: of the RX pipeline's 100 ns, divided by design"},
    {"adapter.requester.response.sequence_cycles", "10",
     "calibration 5: of the RX pipeline's 100 ns, divided by design"},
    {"adapter.requester.response.message_cycles", "10",
     "calibration 5: of the RX pipeline's 100 ns, divided by design"},
    {"adapter.requester.response.place_cycles", "8", "calibration 5: of the RX pipeline's 100 ns, divided by design"},
    {"adapter.requester.gather_depth", "64", "design: covers the latency of PCIe at 100 Gb/s"},
    {"adapter.requester.contexts.entries", "4096", "calibration 5: 1000 RC QPs and more without visible loss"},
    {"adapter.requester.contexts.ways", "16", "design"},
    {"adapter.requester.contexts.fills", "16", "calibration 5: 16 misses under way"},
    {"adapter.requester.contexts.miss_cycles", "0", "calibration 5: 350 ns, which the DMA read takes"},
    {"adapter.responder.contexts.entries", "4096", "calibration 5: 1000 RC QPs and more without visible loss"},
    {"adapter.responder.contexts.ways", "16", "design"},
    {"adapter.responder.contexts.fills", "16", "calibration 5: 16 misses under way"},
    {"adapter.responder.contexts.miss_cycles", "0", "calibration 5: 350 ns, which the DMA read takes"},
    {"adapter.responder.histories.entries", "256", "design: rings of atomics beside the contexts"},
    {"adapter.responder.histories.ways", "8", "design"},
    {"adapter.responder.read_miss_cycles", "0", "calibration 5: misses overlap"},
    {"adapter.responder.read_translations", "16", "calibration 5: misses overlap, 16 under way"},
    {"adapter.responder.atomics.in_flight", "16", "calibration 5: 16 under way"},
    {"adapter.responder.atomics.lock_buckets", "4096", "calibration 5: 4096 by address bits 11:0"},
    {"adapter.responder.write_cycles", "4", "calibration 5: max(4, 2 + L/64); Connect-IB 120 M/s"},
    {"adapter.responder.read_cycles", "4", "calibration 5: max(4.1, 2 + L/64); Connect-IB 121.6 M/s"},
    {"adapter.responder.read_packet_cycles", "4", "calibration 2.3: Connect-IB 121.6 M READs/s of one packet"},
    {"adapter.responder.receive_cycles", "6", "calibration 5: 6.1; Connect-IB 82 M/s"},
    {"adapter.responder.receive_header_cycles", "4", "calibration 5: 4.1; Connect-IB 122 M/s"},
    {"adapter.responder.beat_overhead_cycles", "2", "calibration 5: 2 + L/64"},
    {"adapter.responder.receive.sequence_cycles", "12",
     "calibration 2.3: sum of TX and RX pipeline, fitted to SENDs of 32 B and 1 KB (K02), divided by design"},
    {"adapter.responder.receive.rights_cycles", "10",
     "calibration 2.3: sum of TX and RX pipeline, fitted to SENDs of 32 B and 1 KB (K02), divided by design"},
    {"adapter.responder.receive.place_cycles", "14",
     "calibration 2.3: sum of TX and RX pipeline, fitted to SENDs of 32 B and 1 KB (K02), divided by design"},
    {"adapter.responder.receive.order_cycles", "10",
     "calibration 2.3: sum of TX and RX pipeline, fitted to SENDs of 32 B and 1 KB (K02), divided by design"},
    {"adapter.responder.answer.path_cycles", "8", "calibration 5: of the TX pipeline's 80 ns, divided by design"},
    {"adapter.responder.answer.header_cycles", "16", "calibration 5: of the TX pipeline's 80 ns, divided by design"},
    {"adapter.responder.answer.hand_over_cycles", "16",
     "calibration 5: of the TX pipeline's 80 ns, one cycle of it in the channel, divided by design"},
    {"adapter.responder.read_gathers", "64", "design: covers the latency of PCIe at 100 Gb/s"},
    {"adapter.parser.parser_cycles", "8",
     "calibration 5: of the RX pipeline's 100 ns, what its headers do not take to come"},
    {"adapter.translation.mpt_entries", "2048", "calibration 5: chosen"},
    {"adapter.translation.mtt_entries", "16384", "calibration 5: chosen"},
    {"adapter.translation.mtt_ways", "8", "design"},
    {"adapter.translation.miss_cycles", "0", "calibration 5: 350 ns, which the DMA read takes"},
};

}  // namespace

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> names{"connectx3pro_40g", "connectx5_100g"};
  return names;
}

config profile(const std::string& name) {
  config c;
  const std::vector<std::string>& known = profile_names();
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw sim::config_error("--profile " + name + ": expected connectx3pro_40g or connectx5_100g");
  c.profile = name;
  if (name == "connectx5_100g") {
    c.who.board = "MT_0000000012";
    sim::parameter_set parameters;
    announce(parameters, c);
    for (const setting& s : connectx5_100g) parameters.set(s.path, s.value, "profile " + name);
  }
  return c;
}

void name_sources(sim::parameter_set& to, const std::string& profile) {
  if (profile != "connectx5_100g") return;
  for (const auto& [path, parameter] : to.all())
    if (parameter.source.find("calibration") != std::string::npos)
      to.set_source(path, "none of its own, as connectx3pro_40g; " + parameter.source);
  for (const setting& s : connectx5_100g) to.set_source(s.path, s.source);
}

}  // namespace rnic::adapter
