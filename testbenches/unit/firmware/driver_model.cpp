// SPDX-License-Identifier: Apache-2.0
#include "testbenches/unit/firmware/driver_model.h"

#include <cstring>

#include "model/abi/contexts.h"
#include "model/abi/device.h"

namespace rnic {

driver_model::driver_model(const firmware::firmware_config& config) : fw(hw, config) {
  in_address = hw.allocate(4096);
  out_address = hw.allocate(4096);
  clear_in();
  fw.restart();
}

void driver_model::clear_in() { std::memset(in(), 0, 4096); }

abi::status driver_model::run(abi::opcode op, std::uint32_t modifier, std::uint8_t op_modifier) {
  return run_immediate(op, in_address, modifier, op_modifier);
}

abi::status driver_model::run_immediate(abi::opcode op, std::uint64_t in_param, std::uint32_t modifier,
                                        std::uint8_t op_modifier) {
  firmware::command_request r;
  r.opcode = static_cast<std::uint16_t>(op);
  r.op_modifier = op_modifier;
  r.modifier = modifier;
  r.in_param = in_param;
  r.out_param = out_address;
  const abi::status s = fw.execute(r);
  result = r.out_param;
  return s;
}

void driver_model::fill_map(unsigned entries, unsigned log_pages, std::uint64_t icm_address) {
  clear_in();
  for (unsigned i = 0; i < entries; ++i) {
    const std::uint64_t at = hw.allocate(std::uint64_t{4096} << log_pages);
    put(abi::map_entry::icm_address, icm_address + (std::uint64_t{i} << (12 + log_pages)), 16 * i);
    put(abi::map_entry::bus_address, at | log_pages, 16 * i);
  }
}

std::vector<std::uint64_t> driver_model::probe_chunks() const {
  const std::uint64_t entry = std::uint64_t{64} << 24;
  std::vector<std::uint64_t> c{icm.cmpt,
                               icm.cmpt + entry,
                               icm.cmpt + 2 * entry,
                               icm.cmpt + 3 * entry,
                               icm.eqc,
                               icm.mtt,
                               icm.dmpt,
                               icm.qpc,
                               icm.auxc,
                               icm.altc,
                               icm.rdmarc,
                               icm.cqc,
                               icm.srqc};
  for (unsigned i = 0; i < 32; ++i) c.push_back(icm.mcg + i * 0x40000);
  return c;
}

void driver_model::fill_init_hca() {
  namespace f = abi::init_hca;
  clear_in();
  put(f::version, 2);
  put(f::qpc_base, icm.qpc | 18);
  put(f::srqc_base, icm.srqc | 16);
  put(f::cqc_base, icm.cqc | 16);
  put(f::altc_base, icm.altc);
  put(f::auxc_base, icm.auxc);
  put(f::eqc_base, icm.eqc | log_eqs);
  put(f::rdmarc_base, icm.rdmarc | 4);
  put(f::mcg_base, icm.mcg);
  put(f::log_mcg_bytes, 10);
  put(f::log_mcg_hash, 12);
  put(f::log_mcg_table, 13);
  put(f::dmpt_base, icm.dmpt);
  put(f::windows_enabled, windows ? 1 : 0);
  put(f::log_mpts, 19);
  put(f::mtt_base, icm.mtt);
  put(f::cmpt_base, icm.cmpt);
  put(f::log_uars, 10);
}

void driver_model::bring_up() {
  const auto must = [](abi::status s) {
    if (s != abi::status::ok) throw std::runtime_error("bring-up failed");
  };
  fill_map(8, 1);
  must(run(abi::opcode::map_fa, 8));
  must(run(abi::opcode::run_fw));
  must(run_immediate(abi::opcode::set_icm_size, 0x11d004000));
  for (const std::uint64_t chunk : probe_chunks()) {
    fill_map(1, 6, chunk);
    must(run(abi::opcode::map_icm, 1));
  }
  fill_init_hca();
  must(run(abi::opcode::init_hca));
  fill_eq(9);
  must(run(abi::opcode::sw2hw_eq, 8));
}

driver_model::buffer driver_model::make_buffer(std::uint64_t bytes) {
  const std::uint64_t pages = (bytes + 4095) / 4096;
  buffer b{next_mtt_, hw.allocate(pages * 4096)};
  std::memset(hw.host(b.address), 0, pages * 4096);
  for (std::uint64_t i = 0; i < pages; ++i) {
    std::uint8_t entry[8];
    abi::store64(entry, 0, (b.address + i * 4096) | abi::mtt::present);
    if (!hw.icm_write(icm.mtt + b.mtt + 8 * i, entry, 8)) throw std::runtime_error("MTT is not mapped");
  }
  next_mtt_ += pages * 8;
  return b;
}

void driver_model::fill_eq(unsigned log_size) {
  namespace f = abi::eqc;
  const buffer b = make_buffer(std::uint64_t{32} << log_size);
  clear_in();
  put(f::state, f::state_armed);
  put(f::log_size, log_size);
  put(f::vector, 3);
  abi::store_mtt(in(), f::mtt_high, f::mtt_low, b.mtt);
}

driver_model::buffer driver_model::fill_cq(std::uint8_t eqn, unsigned log_size) {
  namespace f = abi::cqc;
  const buffer b = make_buffer(std::uint64_t{32} << log_size);
  const std::uint64_t record = hw.allocate(8);
  std::memset(hw.host(record), 0, 8);
  clear_in();
  put(f::log_size, log_size);
  put(f::uar, 130);
  put(f::eqn, eqn);
  put(f::db_record, record);
  abi::store_mtt(in(), f::mtt_high, f::mtt_low, b.mtt);
  return b;
}

void driver_model::fill_mpt(std::uint32_t index, bool physical) {
  namespace f = abi::mpt;
  const buffer b = physical ? buffer{} : make_buffer(8192);
  clear_in();
  put(f::flags, f::owner_software << 28 | f::flag_mio | f::flag_region | f::flag_local_read | f::flag_local_write |
                    (physical ? f::flag_physical : 0));
  put(f::key, index);
  put(f::pd_flags, 3);
  put(f::start, physical ? 0 : 0x7f0000001000);
  put(f::length, physical ? ~std::uint64_t{0} : 8192);
  put(f::mtt_address, b.mtt);
  put(f::entity_size, 12);
}

void driver_model::fill_qp(icm::service service, std::uint32_t qpn, std::uint32_t cqn, std::uint32_t optional) {
  namespace q = abi::qpc;
  const std::size_t c = abi::qp_mailbox::context, path = c + q::primary_path;
  clear_in();
  put(abi::qp_mailbox::optional, optional);
  put(q::service, static_cast<unsigned>(service), c);
  put(q::pd, 3, c);
  put(q::mtu_msgmax, 4 << 5 | 31, c);
  put(q::rq_size_stride, 6 << 3 | 0, c);  // 64 receive WQEs of 16 bytes
  put(q::sq_size_stride, 7 << 3 | 2, c);  // 128 send WQEs of 64 bytes
  put(q::rlkey_roce_mode, 2 << 6 | 1 << 4, c);
  put(q::uar, 130, c);
  put(q::local_qpn, qpn, c);
  put(q::remote_qpn, 0x1234, c);
  put(abi::path::ack_timeout, 14, path);
  put(abi::path::link_type, 1, path);
  put(abi::path::gid_index, 5, path);
  put(abi::path::grh_mylmc, 0x80 | 3, path);
  put(abi::path::hop_limit, 64, path);
  put(abi::path::sched_queue, 0x83 | 3 << 3, path);
  put(abi::path::vlan_index, 2, path);
  put(abi::path::feup, abi::path::feup_force_vlan | abi::path::feup_force_up, path);
  put(q::params1, 8u << 28 | 4u << 21 | 7u << 16 | 6u << 13 | 1u << 11, c);
  put(q::next_send_psn, 0x112233, c);
  put(q::send_cqn, cqn, c);
  put(q::receive_cqn, cqn, c);
  put(q::roce_entropy, 0xc123, c);
  put(q::params2, 3u << 21 | 1u << 15 | 1u << 14, c);
  put(q::min_rnr_timer, 12, c);
  put(q::next_receive_psn, 0x445566, c);
  put(q::db_record, 0x800001000, c);
  put(q::qkey, 0x80010000, c);
  abi::store_mtt(in() + c, q::mtt_high, q::mtt_low, 0x400);
}

abi::status driver_model::make_rts(icm::service service, std::uint32_t qpn, std::uint32_t cqn) {
  for (const abi::opcode op : {abi::opcode::rst2init_qp, abi::opcode::init2rtr_qp, abi::opcode::rtr2rts_qp}) {
    fill_qp(service, qpn, cqn);
    if (const abi::status s = run(op, qpn); s != abi::status::ok) return s;
  }
  return abi::status::ok;
}

}  // namespace rnic
