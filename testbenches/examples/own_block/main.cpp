// SPDX-License-Identifier: Apache-2.0
// A block of one's own in the adapter: an ICRC engine that takes a beat in every second cycle only, through the
// interface behind which the model's engine and the verilated one are too. What does it cost a message?
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <systemc>

#include "host_driver/hosts/two_nodes.h"
#include "model/icrc/icrc_if.h"
#include "model/icrc/icrc_model.h"
#include "model/sim/simulation.h"

using namespace rnic;

namespace {

/// The CRC itself is the model's.
class half_rate final : public icrc::icrc_engine_if {
 public:
  explicit half_rate(unsigned beat_bytes) : engine_(beat_bytes) {}
  unsigned beat_bytes() const override { return engine_.beat_bytes(); }
  icrc::icrc_outputs outputs() const override {
    icrc::icrc_outputs out = engine_.outputs();
    out.in_ready = out.in_ready && !busy_;
    return out;
  }
  icrc::icrc_outputs step(const icrc::icrc_beat& in, bool result_ready) override {
    const icrc::icrc_outputs out = outputs();
    engine_.step(busy_ ? icrc::icrc_beat{} : in, result_ready);
    busy_ = in.valid && out.in_ready;  // the beat that was taken has the next cycle too
    return out;
  }
  void reset() override {
    engine_.reset();
    busy_ = false;
  }
  result process(wire::encapsulation encap, const std::uint8_t* l3, std::size_t length) override {
    result r = engine_.process(encap, l3, length);
    r.cycles += sim::beats_of(length, beat_bytes()) - 1;
    return r;
  }

 private:
  icrc::icrc_model engine_;
  bool busy_ = false;
};

/// Time from a WRITE of 2048 bytes to its completion, with `engine` in the adapter of host b; {}: the model's.
sim::time_ps time_of_write(const adapter::icrc_engine_factory& engine) {
  const sim::simulation kernel;  // several systems, one after the other
  hosts::two_nodes_config config;
  config.node = hosts::make_node_config("connectx3pro_40g");
  config.node_b = config.node;
  config.node_b->icrc_engine = engine;
  hosts::two_nodes system(config);
  ibv_cq* cq[2];
  host_driver::queue_pair* qp[2];
  hosts::buffer memory[2];
  const auto connect = [&](unsigned i) {
    hosts::endpoint& e = system.end(i);
    hosts::set_address(e, {}, i + 1);
    cq[i] = hosts::require_made(*e.device, e.device->create_cq(16), "completion queue");
    qp[i] = hosts::make_qp(e, {}, *cq[i], *cq[i]);
    memory[i] = hosts::make_buffer(e, 4096);
    system.meet();
    hosts::connect(e, {}, *qp[i], system.end(1 - i), qp[1 - i]->qp_num, 0, 0);
    system.meet();
  };
  sim::time_ps spent = 0;
  const auto write = [&] {
    connect(0);
    ibv_sge from{memory[0].address(), 2048, memory[0].region->lkey};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &from;
    wr.num_sge = 1;
    wr.wr.rdma = {memory[1].address(), memory[1].region->rkey};
    const sim::time_ps start = system.now_ps();
    hosts::require(system.a().device->post_send(qp[0], &wr, &bad), "post");
    ibv_wc wc{};
    hosts::require(system.a().device->wait_cq(cq[0], 1, &wc), "wait");
    if (wc.status != IBV_WC_SUCCESS) throw hosts::message_failed(wc);
    spent = system.now_ps() - start;
  };
  system.run(write, [&] { connect(1); });
  return spent;
}

}  // namespace

int sc_main(int, char*[]) try {
  const unsigned width = adapter::profile("connectx3pro_40g").datapath_bytes;
  const sim::time_ps models = time_of_write({});
  const sim::time_ps own = time_of_write(
      [width](const std::string& block, const sim::clock_domain&) -> std::unique_ptr<icrc::icrc_engine_if> {
        if (block.find("icrc_check") == std::string::npos) return std::make_unique<icrc::icrc_model>(width);
        return std::make_unique<half_rate>(width);
      });
  std::printf("WRITE of 2048 bytes: %.3f us with the model's ICRC engine, %.3f us with one of half the rate\n",
              static_cast<double>(models) / 1e6, static_cast<double>(own) / 1e6);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "own_block: %s\n", e.what());
  return 1;
}
