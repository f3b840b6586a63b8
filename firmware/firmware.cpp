// SPDX-License-Identifier: Apache-2.0
// Taking, dispatching and completing commands.
#include "firmware/firmware.h"

#include <algorithm>

#include "model/command/command_cr.h"
#include "model/completion/completion_cr.h"
#include "model/ethernet/steering_cr.h"
#include "model/icm/icm_cr.h"
#include "model/mac/mac_cr.h"
#include "model/pcie/pcie_cr.h"

namespace rnic::firmware {

using register_bus::cr_base;
namespace cr = command::cr;

namespace {

constexpr std::uint16_t op(unsigned n) { return static_cast<std::uint16_t>(1u << n); }

}  // namespace

const firmware::handler firmware::handlers[] = {
    {abi::opcode::query_fw, &firmware::query_fw, any_stage, op(0)},
    {abi::opcode::map_fa, &firmware::map_fa, stage_off, op(0)},
    {abi::opcode::unmap_fa, &firmware::unmap_fa, any_stage, op(0)},
    {abi::opcode::run_fw, &firmware::run_fw, stage_off, op(0)},
    {abi::opcode::nop, &firmware::nop, any_stage, op(0)},
    {abi::opcode::mod_stat_cfg, &firmware::mod_stat_cfg, after_run, op(0) | op(2)},
    {abi::opcode::query_dev_cap, &firmware::query_dev_cap, after_run, op(0)},
    {abi::opcode::query_adapter, &firmware::query_adapter, after_run, op(0)},
    {abi::opcode::query_port, &firmware::query_port, after_run, op(0)},
    {abi::opcode::set_icm_size, &firmware::set_icm_size, stage_running | stage_sized, op(0)},
    {abi::opcode::map_icm_aux, &firmware::map_icm_aux, stage_sized, op(0)},
    {abi::opcode::unmap_icm_aux, &firmware::unmap_icm_aux, any_stage, op(0)},
    {abi::opcode::map_icm, &firmware::map_icm, stage_sized | stage_ready, op(0)},
    {abi::opcode::unmap_icm, &firmware::unmap_icm, any_stage, op(0)},
    {abi::opcode::init_hca, &firmware::init_hca, stage_sized, op(0)},
    {abi::opcode::close_hca, &firmware::close_hca, any_stage, op(0) | op(1)},
    {abi::opcode::query_hca, &firmware::query_hca, stage_ready, op(0)},
    {abi::opcode::query_func, &firmware::query_func, after_run, op(0)},
    {abi::opcode::arm_comm_channel, &firmware::arm_comm_channel, stage_ready, op(0)},
    {abi::opcode::inform_flr_done, &firmware::inform_flr_done, stage_ready, op(0)},
    {abi::opcode::gen_eqe, &firmware::gen_eqe, stage_ready, op(0)},
    {abi::opcode::access_mem, &firmware::access_mem, stage_ready, op(0)},
    {abi::opcode::config_dev, &firmware::config_dev, after_run, op(0) | op(1)},
    {abi::opcode::access_reg, &firmware::access_reg, stage_ready, op(0)},
    {abi::opcode::allocate_vpp, &firmware::allocate_vpp, stage_ready, op(abi::vpp::op_set) | op(abi::vpp::op_query)},
    {abi::opcode::set_vport_qos, &firmware::set_vport_qos, stage_ready, op(abi::vpp::op_set) | op(abi::vpp::op_query)},
    {abi::opcode::init_port, &firmware::init_port, stage_ready, op(0)},
    {abi::opcode::close_port, &firmware::close_port, any_stage, op(0)},
    {abi::opcode::set_port, &firmware::set_port, stage_ready, op(0) | op(1)},
    {abi::opcode::set_mcast_fltr, &firmware::set_multicast_filter, stage_ready, op(0) | op(1) | op(2)},
    {abi::opcode::set_vlan_fltr, &firmware::set_vlan_filter, stage_ready, op(0)},
    {abi::opcode::sw2hw_mpt, &firmware::sw2hw_mpt, stage_ready, op(0)},
    {abi::opcode::hw2sw_mpt, &firmware::hw2sw_mpt, stage_ready, op(0) | op(1)},
    {abi::opcode::query_mpt, &firmware::query_mpt, stage_ready, op(0)},
    {abi::opcode::write_mtt, &firmware::write_mtt, stage_ready, op(0)},
    {abi::opcode::sync_tpt, &firmware::sync_tpt, any_stage, op(0)},
    {abi::opcode::sw2hw_eq, &firmware::sw2hw_eq, stage_ready, op(0)},
    {abi::opcode::hw2sw_eq, &firmware::hw2sw_eq, stage_ready, op(0) | op(1)},
    {abi::opcode::query_eq, &firmware::query_eq, stage_ready, op(0)},
    {abi::opcode::map_eq, &firmware::map_eq, stage_ready, op(0)},
    {abi::opcode::sw2hw_cq, &firmware::sw2hw_cq, stage_ready, op(0) | op(1)},
    {abi::opcode::hw2sw_cq, &firmware::hw2sw_cq, stage_ready, op(0) | op(1)},
    {abi::opcode::query_cq, &firmware::query_cq, stage_ready, op(0)},
    {abi::opcode::modify_cq, &firmware::modify_cq, stage_ready, op(0) | op(1)},
    {abi::opcode::sw2hw_srq, &firmware::sw2hw_srq, stage_ready, op(0)},
    {abi::opcode::hw2sw_srq, &firmware::hw2sw_srq, stage_ready, op(0) | op(1)},
    {abi::opcode::query_srq, &firmware::query_srq, stage_ready, op(0)},
    {abi::opcode::arm_srq, &firmware::arm_srq, stage_ready, op(0)},
    {abi::opcode::rst2init_qp, &firmware::change_qp, stage_ready, op(0)},
    {abi::opcode::init2init_qp, &firmware::change_qp, stage_ready, op(0)},
    {abi::opcode::init2rtr_qp, &firmware::change_qp, stage_ready, op(0)},
    {abi::opcode::rtr2rts_qp, &firmware::change_qp, stage_ready, op(0)},
    {abi::opcode::rts2rts_qp, &firmware::change_qp, stage_ready, op(0)},
    {abi::opcode::sqerr2rts_qp, &firmware::change_qp, stage_ready, op(0)},
    {abi::opcode::to_err_qp, &firmware::change_qp, stage_ready, op(0)},
    {abi::opcode::rts2sqd_qp, &firmware::change_qp, stage_ready, op(0)},
    {abi::opcode::sqd2sqd_qp, &firmware::change_qp, stage_ready, op(0)},
    {abi::opcode::sqd2rts_qp, &firmware::change_qp, stage_ready, op(0)},
    {abi::opcode::to_rst_qp, &firmware::reset_qp, stage_ready, op(0) | op(2)},
    {abi::opcode::query_qp, &firmware::query_qp, stage_ready, op(0)},
    {abi::opcode::update_qp, &firmware::update_qp, stage_ready, op(0)},
    {abi::opcode::conf_special_qp, &firmware::conf_special_qp, stage_ready, op(0)},
    {abi::opcode::mad_ifc, &firmware::mad_ifc, stage_ready, 0xff},
    {abi::opcode::mgid_hash, &firmware::mgid_hash, stage_ready, op(0) | op(1)},
    {abi::opcode::read_mcg, &firmware::read_mcg, stage_ready, op(0)},
    {abi::opcode::write_mcg, &firmware::write_mcg, stage_ready, op(0) | op(1)},
    {abi::opcode::flow_steering_attach, &firmware::attach_flow, stage_ready, op(0)},
    {abi::opcode::flow_steering_detach, &firmware::detach_flow, stage_ready, op(0)},
    {abi::opcode::query_if_stat, &firmware::query_if_stat, stage_ready, op(0)},
    {abi::opcode::dump_eth_stats, &firmware::dump_eth_stats, stage_ready, op(0)},
    {abi::opcode::diag_rprt, &firmware::diag_rprt, stage_ready, op(2)},
    {abi::opcode::congestion_ctrl, &firmware::congestion_ctrl, stage_ready, op(0) | op(1) | op(4)},
    {abi::opcode::hw_health_check, &firmware::hw_health_check, stage_ready, op(0)},
    {abi::opcode::virt_port_map, &firmware::virt_port_map, stage_ready, op(abi::virt_port_map_mailbox::op_set)},
};

const firmware::handler* firmware::find_handler(std::uint16_t opcode) {
  const auto found = std::find_if(std::begin(handlers), std::end(handlers), [opcode](const handler& h) {
    return static_cast<std::uint16_t>(h.opcode) == opcode;
  });
  return found == std::end(handlers) ? nullptr : found;
}

firmware::firmware(hardware_if& hardware, const firmware_config& config)
    : config_(config), chip_(hardware, config_), functions_(chip_, config_) {}

void firmware::restart() {
  stage_ = stage_off;
  firmware_area_pages_ = aux_pages_ = 0;
  mapped_.clear();
  hca_parameters_.fill(0);
  layouts_.fill({});
  for (owner_table* table : {&mpts_, &eqs_, &cqs_, &srqs_}) table->clear();
  groups_written_.clear();
  flows_.clear();
  qps_.clear();
  special_qp_base_ = 0;
  port_up_.fill(false);
  link_reported_.fill(false);
  groups_filtered_.fill(0);
  roce_v2_ports_.fill(true);  // so says the device reset
  vports_.fill({});
  reacting_.fill(0);
  traffic_base_.fill({});
  roce_v2_port_ = 4791;
  roce_flags_ = 0;
  write_port_map(transport::cr::port_map_identity);
  for (unsigned port = 0; port < config_.num_ports; ++port) {
    chip_.write_port(cr_base::mac, port, mac::cr::port_control, 0);
  }
  chip_.empty_transport();
  chip_.write(cr_base::completion, completion::cr::reset, 1);
  chip_.write(cr_base::steering, ethernet::cr::reset, 1);
  chip_.write(cr_base::icm, icm::cr::reset, 1);
  chip_.write(cr_base::pcie, pcie::cr::dma_enable, 1);
  functions_.restart();
}

bool firmware::serve() {
  command_request request;
  if (take_command(request)) {
    complete(request, execute(request));
    return true;
  }
  return report_drained() || report_link_changes() || functions_.serve();
}

bool firmware::take_command(command_request& to) {
  const auto word = [this](std::uint32_t offset) { return chip_.read(cr_base::command, offset); };
  if ((word(cr::status) & cr::status_pending) == 0) return false;
  to.in_param = std::uint64_t{word(cr::in_param_high)} << 32 | word(cr::in_param_low);
  to.out_param = std::uint64_t{word(cr::out_param_high)} << 32 | word(cr::out_param_low);
  to.modifier = word(cr::in_modifier);
  const std::uint32_t control = word(cr::control);
  to.opcode = control & 0xfff;
  to.op_modifier = control >> 12 & 0xf;
  to.event = (control & cr::control_event) != 0;
  to.token = static_cast<std::uint16_t>(word(cr::token));
  chip_.write(cr_base::command, cr::accept, 1);
  return true;
}

abi::status firmware::execute(command_request& request) {
  chip_.hw().spend(config_.dispatch_cycles);
  const handler* h = find_handler(request.opcode);
  if (h == nullptr || (h->op_modifiers >> request.op_modifier & 1) == 0) return status::bad_op;
  if ((h->stages & stage_) == 0) return status::bad_sys_state;
  return (this->*h->execute)(request);
}

void firmware::complete(const command_request& request, status s) {
  if (request.event) {
    chip::event_data data{};
    data[0] = request.token;
    data[2] = static_cast<std::uint32_t>(s);
    data[3] = static_cast<std::uint32_t>(request.out_param >> 32);
    data[4] = static_cast<std::uint32_t>(request.out_param);
    chip_.raise(abi::eqe::event::command, 0, data);
    return;
  }
  chip_.write(cr_base::command, cr::out_param_high, static_cast<std::uint32_t>(request.out_param >> 32));
  chip_.write(cr_base::command, cr::out_param_low, static_cast<std::uint32_t>(request.out_param));
  chip_.write(cr_base::command, cr::complete, static_cast<std::uint32_t>(s));
}

/// Mailboxes are in the physical function's memory; the low byte of their address is a function number (2.7).
abi::status firmware::read_mailbox(const command_request& request, std::size_t bytes) {
  in_.fill(0);
  const bool ok = chip_.hw().dma_read(0, request.in_param & ~std::uint64_t{0xff}, in_.data(), bytes);
  return ok ? status::ok : status::internal_error;
}

abi::status firmware::write_mailbox(const command_request& request, std::size_t bytes) {
  const bool ok = chip_.hw().dma_write(0, request.out_param & ~std::uint64_t{0xff}, out_.data(), bytes);
  return ok ? status::ok : status::internal_error;
}

bool firmware::report_link_changes() {
  for (unsigned port = 0; port < config_.num_ports; ++port) {
    if (!port_up_[port]) continue;
    const bool up = (chip_.read_port(cr_base::mac, port, mac::cr::port_status) & 1) != 0;
    if (up == link_reported_[port]) continue;
    link_reported_[port] = up;
    chip::event_data data{};
    data[2] = (port + 1) << 28;
    chip_.raise(abi::eqe::event::port_change, up ? abi::eqe::port_active : abi::eqe::port_down, data);
    return true;
  }
  return false;
}

}  // namespace rnic::firmware
