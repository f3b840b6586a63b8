// SPDX-License-Identifier: Apache-2.0
// The adapter's firmware: executes the commands of the published interface.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "firmware/chip.h"
#include "firmware/firmware_config.h"
#include "firmware/flow_rules.h"
#include "firmware/functions.h"
#include "firmware/hardware_if.h"
#include "firmware/owner_table.h"
#include "model/abi/command_set.h"
#include "model/abi/contexts.h"
#include "model/abi/endian.h"
#include "model/icm/contexts.h"
#include "model/icm/icm_map.h"
#include "model/transport/transport_cr.h"

namespace rnic::firmware {

/// A command as the command block hands it over.
struct command_request {
  std::uint64_t in_param = 0;   ///< mailbox or immediate value
  std::uint64_t out_param = 0;  ///< mailbox; replaced by the immediate result of commands that have one
  std::uint32_t modifier = 0;
  std::uint16_t opcode = 0;
  std::uint8_t op_modifier = 0;
  bool event = false;  ///< to be completed by an event
  std::uint16_t token = 0;
};

/// Executes commands one after the other. All knowledge of objects (which are owned by hardware, QPs' published
/// contexts) is here and in ICM; nothing is shared with the blocks but registers and ICM.
class firmware {
 public:
  firmware(hardware_if& hardware, const firmware_config& config);

  /// Start after power-up or reset: forgets everything, and resets what has a reset register.
  void restart();
  /// Executes one pending command, or reports one change of a port's link. False: nothing to do until the next
  /// interrupt.
  bool serve();

  /// Executes a command and gives its status; request.out_param has the immediate result. What serve() does between
  /// taking a command and completing it.
  abi::status execute(command_request& request);

  const firmware_config& config() const { return config_; }

 private:
  using status = abi::status;

  /// Stages of life; a command is legal in those that its table entry names.
  enum stage : std::uint8_t { stage_off = 1, stage_running = 2, stage_sized = 4, stage_ready = 8 };
  static constexpr std::uint8_t any_stage = stage_off | stage_running | stage_sized | stage_ready;
  static constexpr std::uint8_t after_run = stage_running | stage_sized | stage_ready;
  struct handler {
    abi::opcode opcode;
    status (firmware::*execute)(command_request&);
    std::uint8_t stages;
    std::uint16_t op_modifiers;  ///< bit n: op modifier n is known
  };
  static const handler handlers[];
  static const handler* find_handler(std::uint16_t opcode);

  // firmware.cpp
  bool take_command(command_request& to);
  void complete(const command_request& request, status s);
  status read_mailbox(const command_request& request, std::size_t bytes = abi::mailbox_bytes);
  status write_mailbox(const command_request& request, std::size_t bytes = abi::mailbox_bytes);
  bool report_link_changes();
  static std::uint16_t function_of(const command_request& r) { return static_cast<std::uint16_t>(r.in_param & 0xff); }
  template <class T>
  void put(abi::field<T> f, std::uint64_t value) {
    abi::set(out_.data(), f, static_cast<T>(value));
  }
  template <class T>
  T in(abi::field<T> f, std::size_t base = 0) const {
    return abi::get(in_.data() + base, f);
  }

  // system_commands.cpp
  status query_fw(command_request& r);
  status run_fw(command_request& r);
  status mod_stat_cfg(command_request& r);
  status query_dev_cap(command_request& r);
  status query_adapter(command_request& r);
  status init_hca(command_request& r);
  bool set_group_table();
  status close_hca(command_request& r);
  status query_hca(command_request& r);
  status config_dev(command_request& r);
  status hw_health_check(command_request& r);
  status virt_port_map(command_request& r);
  void write_port_map(std::uint32_t value);
  status nop(command_request& r);
  void fill_capabilities();
  void program_tables();
  bool clear_contexts(std::uint64_t icm_address, std::uint64_t bytes);
  void drop_everything();

  // function_commands.cpp
  status query_func(command_request& r);
  status arm_comm_channel(command_request& r);
  status inform_flr_done(command_request& r);
  status gen_eqe(command_request& r);
  status access_mem(command_request& r);

  // icm_commands.cpp
  status map_fa(command_request& r);
  status unmap_fa(command_request& r);
  status set_icm_size(command_request& r);
  status map_icm_aux(command_request& r);
  status unmap_icm_aux(command_request& r);
  status map_icm(command_request& r);
  status unmap_icm(command_request& r);
  status count_pages(command_request& r, std::uint64_t& pages);
  status check_map_entry(std::size_t index, bool icm, std::uint64_t& address, std::uint64_t& bus,
                         std::uint32_t& pages) const;

  // port_commands.cpp
  bool valid_port(std::uint32_t port) const { return port >= 1 && port <= config_.num_ports; }
  unsigned vectors_of(std::uint16_t function) const {
    return function == 0 ? config_.msix_vectors : config_.vf_msix_vectors;
  }
  status query_port(command_request& r);
  status init_port(command_request& r);
  status close_port(command_request& r);
  status set_port(command_request& r);
  status set_port_general(unsigned port);
  status set_port_rqp_calc(unsigned port);
  status set_macs(unsigned port);
  status set_vlans(unsigned port);
  status set_gids(unsigned port, std::size_t stride);
  status set_priority_classes(unsigned port);
  status set_scheduler(unsigned port);
  void write_gid(unsigned port, unsigned index, const std::uint8_t* gid, bool v2);
  status set_multicast_filter(command_request& r);
  status set_vlan_filter(command_request& r);
  status set_roce_mode(unsigned port, std::uint8_t mode);
  // port_registers.cpp
  status access_reg(command_request& r);
  std::uint8_t access_ptys();

  // vport_commands.cpp
  status allocate_vpp(command_request& r);
  status set_vport_qos(command_request& r);
  using vport_counts = std::array<std::uint32_t, abi::vpp::priorities>;

  // memory_commands.cpp
  status sw2hw_mpt(command_request& r);
  status hw2sw_mpt(command_request& r);
  status query_mpt(command_request& r);
  status write_mtt(command_request& r);
  status sync_tpt(command_request& r);
  bool mtt_range_ok(std::uint64_t mtt_address, std::uint64_t entries) const;

  // queue_commands.cpp: EQs, SRQs, and what all queues in host memory share
  struct buffer {
    std::uint64_t mtt = 0;
    std::uint32_t offset = 0;  ///< of the queue in its first page
    std::uint8_t log_page = 12;
    std::uint64_t bytes = 0;
  };
  status check_buffer(const buffer& b) const;
  void drop_buffer(const buffer& b);
  status write_buffer(std::uint16_t function, const buffer& b, std::uint64_t at, const std::uint8_t* from,
                      std::size_t bytes);
  status hand_entries_to_hardware(std::uint16_t function, const buffer& b, unsigned entry_bytes,
                                  std::uint64_t first_index, unsigned log_entries);
  template <class Context>
  bool load_context(icm::table t, std::uint32_t index, Context& c);
  template <class Context>
  bool store_context(icm::table t, std::uint32_t index, const Context& c);
  status sw2hw_eq(command_request& r);
  status hw2sw_eq(command_request& r);
  status query_eq(command_request& r);
  status map_eq(command_request& r);
  status sw2hw_srq(command_request& r);
  status hw2sw_srq(command_request& r);
  status query_srq(command_request& r);
  status arm_srq(command_request& r);
  // cq_commands.cpp
  status sw2hw_cq(command_request& r);
  status hw2sw_cq(command_request& r);
  status query_cq(command_request& r);
  status modify_cq(command_request& r);
  status moderate_cq(std::uint32_t cqn);
  status resize_cq(std::uint32_t cqn, std::uint16_t function);
  void publish_cq(const icm::cq_context& c);

  // qp_commands.cpp
  struct qp_pair {
    icm::requester_context requester;
    icm::responder_context responder;
  };
  struct qp_record {
    std::uint32_t qpn = 0;
    std::uint16_t function = 0;
    bool draining = false;  ///< SQ_DRAINED is owed
  };
  struct transition {
    abi::opcode opcode;
    std::uint16_t from;  ///< bit n: legal in state n
    icm::qp_state to;
  };
  status change_qp(command_request& r);
  status change_stopped_qp(const transition& t, const command_request& r);
  status change_live_qp(const transition& t, std::uint32_t qpn);
  status hand_over(const transition& t, std::uint32_t index, const std::uint8_t* stored, qp_pair& qp);
  static bool goes_on(abi::opcode op);
  status reset_qp(command_request& r);
  status query_qp(command_request& r);
  status conf_special_qp(command_request& r);
  status check_qp_context(std::uint16_t function) const;
  bool asks_for_migration() const;
  status check_path(const std::uint8_t* stored) const;
  status check_rdma(const std::uint8_t* stored) const;
  bool queue_sizes_ok(icm::service service) const;
  bool report_drained();
  static icm::qp_state state_of(const qp_pair& qp);
  void drop_qp_buffer(const qp_pair& qp);
  static const transition transitions[];
  qp_record* find_qp(std::uint32_t qpn);
  std::uint32_t qp_index(std::uint32_t qpn) const { return qpn & ((1u << layout(icm::table::qpc).log_entries) - 1); }
  // qp_update.cpp
  status update_qp(command_request& r);
  status merge_update(std::uint64_t path, std::uint64_t fields, std::uint8_t* stored) const;
  static bool rate_limit_ok(std::uint16_t limit);
  // qp_contexts.cpp
  void merge_qp_context(std::uint8_t* stored, abi::opcode op) const;
  void merge_optional(std::uint8_t* stored, std::uint32_t optional) const;
  void fill_static(const std::uint8_t* stored, qp_pair& qp) const;
  icm::service service_of(const std::uint8_t* stored) const;
  void fill_live(const std::uint8_t* stored, abi::opcode op, icm::qp_state to, qp_pair& qp) const;
  void publish_qp(const qp_pair& qp, std::uint8_t* stored) const;

  // multicast_commands.cpp
  status mgid_hash(command_request& r);
  status read_mcg(command_request& r);
  status write_mcg(command_request& r);
  status write_default_entry(const command_request& r);

  // flow_commands.cpp
  status attach_flow(command_request& r);
  status detach_flow(command_request& r);

  // statistics_commands.cpp
  status query_if_stat(command_request& r);
  status dump_eth_stats(command_request& r);
  status diag_rprt(command_request& r);
  struct traffic {
    std::uint64_t rx_frames = 0, rx_bytes = 0, tx_frames = 0, tx_bytes = 0;
  };

  // congestion_commands.cpp
  status congestion_ctrl(command_request& r);
  void query_reaction_points(unsigned port, unsigned priority);
  void query_reaction_statistics(unsigned port, unsigned priority);
  status check_reaction_points() const;
  void set_reaction_points(unsigned port, unsigned priority);
  void forget_congestion();

  // mad_commands.cpp
  status mad_ifc(command_request& r);
  std::uint16_t answer_mad(unsigned port);
  void answer_node_info(unsigned port);
  void answer_port_info(unsigned port);
  std::uint16_t answer_guid_info(unsigned port);

  icm::table_layout& layout(icm::table t) { return layouts_[static_cast<unsigned>(t)]; }
  const icm::table_layout& layout(icm::table t) const { return layouts_[static_cast<unsigned>(t)]; }
  std::uint64_t entry(icm::table t, std::uint32_t index) const {
    return layout(t).base + std::uint64_t{index} * layout(t).entry_bytes;
  }
  bool in_table(icm::table t, std::uint32_t index) const { return index >> layout(t).log_entries == 0; }

  const firmware_config config_;
  chip chip_;
  functions functions_;
  flow_rules flows_{chip_};
  stage stage_ = stage_off;
  alignas(8) std::array<std::uint8_t, abi::mailbox_bytes> in_{};
  alignas(8) std::array<std::uint8_t, abi::mailbox_bytes> out_{};

  std::uint64_t firmware_area_pages_ = 0, aux_pages_ = 0;
  std::map<std::uint64_t, std::uint32_t> mapped_;     // ICM address -> pages of a chunk
  std::array<std::uint8_t, 0x200> hca_parameters_{};  // mailbox of INIT_HCA, given back by QUERY_HCA
  std::array<icm::table_layout, static_cast<unsigned>(icm::table::count)> layouts_{};
  unsigned log_mcg_hash_ = 0;
  unsigned cqe_bytes_ = 32, eqe_bytes_ = 32;

  // Objects that belong to hardware, by index.
  owner_table mpts_, eqs_, cqs_, srqs_;
  std::unordered_map<std::uint32_t, qp_record> qps_;  // by index: QPs that are not in the reset state
  std::uint32_t special_qp_base_ = 0;

  std::vector<bool> groups_written_;

  std::array<bool, 2> port_up_{};
  std::array<bool, 2> link_reported_{};
  std::array<std::uint8_t, 2> reacting_{};         ///< priorities of a port that CONGESTION_CTRL has enabled
  std::array<unsigned, 2> groups_filtered_{};      ///< addresses in a port's filter
  std::array<bool, 2> roce_v2_ports_{true, true};  ///< SET_PORT's roce_mode, as the registers have it
  std::array<vport_counts, 2> vports_{};           ///< virtual ports with a rate, by priority
  std::array<traffic, 256> traffic_base_{};        // what QUERY_IF_STAT was reset at, by counter
  std::uint16_t roce_v2_port_ = 4791;
  std::uint32_t roce_flags_ = 0;
  std::uint32_t port_map_ = transport::cr::port_map_identity;  // as the register has it
};

}  // namespace rnic::firmware
