// SPDX-License-Identifier: Apache-2.0
// Commands and mailboxes of a driver that does anything, with the device brought up or fresh from reset. Each command
// ends; afterwards a reset makes the device as new.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "model/abi/bar_layout.h"
#include "model/abi/command_set.h"
#include "model/abi/endian.h"
#include "testbenches/fuzz/input.h"
#include "testbenches/fuzz/live_adapter.h"
#include "testbenches/fuzz/property.h"

namespace rnic::fuzz {
namespace {

using conformance::rig;
using conformance::us;
namespace hcr = abi::hcr;
using abi::opcode;

constexpr unsigned most_commands = 60;
constexpr std::uint64_t command_us = 200'000, command_ticks = 4'000'000;
constexpr std::size_t mailboxes = 2;

constexpr opcode opcodes[] = {opcode::query_dev_cap,    opcode::query_fw,        opcode::query_adapter,
                              opcode::init_hca,         opcode::close_hca,       opcode::init_port,
                              opcode::close_port,       opcode::query_hca,       opcode::set_port,
                              opcode::sw2hw_mpt,        opcode::query_mpt,       opcode::hw2sw_mpt,
                              opcode::read_mtt,         opcode::write_mtt,       opcode::map_eq,
                              opcode::sw2hw_eq,         opcode::hw2sw_eq,        opcode::query_eq,
                              opcode::sw2hw_cq,         opcode::hw2sw_cq,        opcode::query_cq,
                              opcode::rst2init_qp,      opcode::init2rtr_qp,     opcode::rtr2rts_qp,
                              opcode::rts2rts_qp,       opcode::sqerr2rts_qp,    opcode::to_err_qp,
                              opcode::rts2sqd_qp,       opcode::sqd2rts_qp,      opcode::to_rst_qp,
                              opcode::query_qp,         opcode::conf_special_qp, opcode::mad_ifc,
                              opcode::read_mcg,         opcode::write_mcg,       opcode::mgid_hash,
                              opcode::modify_cq,        opcode::init2init_qp,    opcode::access_mem,
                              opcode::sync_tpt,         opcode::diag_rprt,       opcode::nop,
                              opcode::mod_stat_cfg,     opcode::sw2hw_srq,       opcode::hw2sw_srq,
                              opcode::query_srq,        opcode::sqd2sqd_qp,      opcode::config_dev,
                              opcode::access_reg,       opcode::arm_srq,         opcode::query_port,
                              opcode::set_vlan_fltr,    opcode::set_mcast_fltr,  opcode::dump_eth_stats,
                              opcode::sense_port,       opcode::hw_health_check, opcode::query_if_stat,
                              opcode::query_func,       opcode::set_node,        opcode::virt_port_map,
                              opcode::update_qp,        opcode::run_fw,          opcode::unmap_icm,
                              opcode::map_icm,          opcode::unmap_icm_aux,   opcode::map_icm_aux,
                              opcode::set_icm_size,     opcode::unmap_fa,        opcode::map_fa,
                              opcode::arm_comm_channel, opcode::gen_eqe,         opcode::inform_flr_done};

class hostile_driver {
 public:
  hostile_driver(rig& r, input& in) : r_(r), bus_(*r.at().bus), in_(in) {
    for (auto& box : boxes_) box = bus_.allocate(abi::mailbox_bytes);
  }

  void run() {
    const std::uint8_t how = in_.u8();
    if ((how & 1) != 0) make_objects();
    if ((how & 2) != 0) {
      bus_.mmio_write32(0, abi::bar0::reset, 1);
      bus_.spend_ps(1000 * us);
    }
    const std::uint64_t start = ticks();
    for (unsigned i = 0; i < most_commands && !in_.empty() && ticks() - start < command_ticks; ++i) step();
    for (const auto& box : boxes_) bus_.release(box);
  }

 private:
  /// Something that commands can be about.
  void make_objects() {
    hosts::endpoint& at = r_.at();
    host_driver::completion_queue* const cq = at.device->create_cq(16);
    demand(cq != nullptr, "a completion queue is to be had");
    ibv_srq_init_attr srq{};
    srq.attr = {16, 1, 0};
    const host_driver::shared_receive_queue* const shared = at.device->create_srq(at.pd, &srq);
    host_driver::queue_pair* const rts = hosts::make_qp(at, r_.options(), *cq, *cq);
    hosts::connect(at, r_.options(), *rts, r_.peer(), r_.new_peer_qpn(), 1, 1);
    const hosts::buffer memory = hosts::make_buffer(at, 8192);
    numbers_ = {rts->qp_num, hosts::make_qp(at, r_.options(), *cq, *cq)->qp_num, cq->cqn, memory.region->lkey >> 8,
                shared != nullptr ? shared->srqn : 0};
  }

  /// Numbers of objects, of ports, or any.
  std::uint32_t number() {
    const std::uint8_t how = in_.u8();
    if (how < 128 && !numbers_.empty()) return numbers_[how % numbers_.size()];
    return how < 240 ? how % 16 : in_.u32();
  }
  std::uint64_t parameter() {
    const std::uint8_t how = in_.u8();
    if (how < 0xd0) return boxes_[how % mailboxes].bus_address;
    return how < 0xf0 ? in_.u16() : in_.u64();
  }

  void step() {
    const unsigned what = in_.below(4);
    std::uint8_t* const box = boxes_[in_.below(mailboxes)].pointer;
    if (what == 0) {  // some bytes of a mailbox
      const std::size_t at = in_.u16() % abi::mailbox_bytes;
      const auto bytes = in_.bytes(std::min<std::size_t>(in_.u8() % 80, abi::mailbox_bytes - at));
      std::copy(bytes.begin(), bytes.end(), box + at);
    } else if (what == 1 && in_.bit()) {
      std::memset(box, in_.below(4) == 3 ? 0xff : 0, abi::mailbox_bytes);
    } else {
      const std::uint8_t which = in_.u8();
      const std::uint32_t op =
          which < 0xf8 ? static_cast<std::uint32_t>(opcodes[which % std::size(opcodes)]) : in_.u16();
      const std::uint32_t modifier = number();
      const std::uint8_t op_modifier = in_.u8();
      const std::uint64_t in = parameter(), out = parameter();
      command(op & hcr::opcode_mask, modifier, op_modifier % 16, in, out);
    }
  }

  void command(std::uint32_t op, std::uint32_t modifier, std::uint32_t op_modifier, std::uint64_t in,
               std::uint64_t out) {
    const patience all("a command ends", command_us * us, command_ticks);
    const std::uint64_t control = abi::bar0::hcr + hcr::control;
    const std::uint32_t before = bus_.mmio_read32(0, control);
    const std::array<std::uint32_t, 6> words = {
        static_cast<std::uint32_t>(in >> 32),  static_cast<std::uint32_t>(in),  modifier,
        static_cast<std::uint32_t>(out >> 32), static_cast<std::uint32_t>(out), token_++ << hcr::token_shift};
    for (unsigned i = 0; i < words.size(); ++i) bus_.mmio_write32(0, abi::bar0::hcr + 4 * i, words[i]);
    bus_.mmio_write32(0, control, hcr::go | (~before & hcr::toggle) | op_modifier << hcr::opcode_modifier_shift | op);
    while ((bus_.mmio_read32(0, control) & hcr::go) != 0) bus_.spend_ps(10 * us);
  }

  rig& r_;
  host_driver::bus_if& bus_;
  input& in_;
  std::array<host_driver::bus_if::dma_memory, mailboxes> boxes_{};
  std::vector<std::uint32_t> numbers_;
  std::uint32_t token_ = 0x7000;
};

/// A driver that begins anew.
void start_again(rig& r) {
  const patience all("a reset brings the device back", 3'000'000 * us, 20'000'000);
  if (const int error = r.dev().reset()) broken("reset: " + std::string(std::strerror(-error)));
  if (const int error = r.dev().open()) broken("open after a reset: " + std::string(std::strerror(-error)));
  hosts::set_address(r.at(), r.options(), 1);
}

}  // namespace
}  // namespace rnic::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  rnic::fuzz::rig::configure([](rnic::hosts::node_config& c) { c.adapter.pcie.space.total_vfs = 2; });
  rnic::fuzz::bring_up();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rnic::fuzz::in_adapter([&](rnic::conformance::rig& r) {
    rnic::fuzz::input in(data, size);
    rnic::fuzz::hostile_driver(r, in).run();
    rnic::fuzz::start_again(r);
    rnic::fuzz::expect_serves(r);
    rnic::fuzz::expect_rest(r);
  });
  return 0;
}
