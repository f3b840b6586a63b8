// SPDX-License-Identifier: Apache-2.0
// The physical function's driver as the virtual functions see it: it executes their commands.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "host_driver/bus_if.h"
#include "host_driver/device.h"
#include "host_driver/functions/mad_tunnel.h"
#include "host_driver/functions/ports.h"
#include "host_driver/functions/tracker.h"
#include "model/abi/command_set.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

/// What a function's driver sees of the links (IFLA_VF_LINK_STATE): those that there are, or one that is always up or
/// down. Hardware does not care, as in the real one.
enum class function_link : std::uint8_t { automatic, up, down };

/// What the administrator of the host says of a virtual function (ip link set ... vf).
struct function_settings {
  std::uint64_t mac = 0;  ///< 48 bits, of port 1; that of port 2 is one more. 0: the physical function's and a number
  /// VLAN of all that it sends and gets, without its knowledge (VST): 1 to 4094, and the priority in the tag; 0: it
  /// tags as it likes (VGT).
  std::uint16_t vlan = 0;
  std::uint8_t priority = 0;
  function_link link = function_link::automatic;
  /// The most that its queue pairs send together, through each port, in Mb/s; 0: as much as they can. As the kernel has
  /// it, only where it has a VLAN, of priority 0 (net/cmd.c: mlx4_is_vf_vst_and_prio_qos).
  std::uint32_t max_rate_mbps = 0;
  /// Plain frames leave with its own source address, whatever its programs put there (mlx4_set_vf_spoofchk).
  bool spoof_check = false;
  /// Without: it has plain Ethernet alone, and the host keeps no memory for queue pairs of RDMA, regions and GIDs.
  bool roce = true;
};

/// A virtual function reaches hardware with its doorbells, and firmware not at all: its commands come here, are looked
/// at, and go on in its name (net/cmd.c: mlx4_master_do_cmd, mlx4_master_process_vhcr; net/resource_tracker.c). What it
/// names must be its own, or the answer is a status: nothing of what it asks can reach another function's objects.
///
/// Quotas: what is free of each kind when start() is called, divided by the number of functions, the physical one among
/// them; half of all translation entries, of group and rule entries and of each port's VLANs are for the virtual ones
/// together; a MAC address for each port. What a function may have it can get, whatever others have, the physical one
/// among them (the kernel guarantees half of it): its translation entries are a range of its own. Who wants more gets
/// INTERNAL_ERR, as from the kernel (resource_tracker.c: mlx4_grant_resource; cmd.c: mlx4_errno_to_status of EDQUOT).
class function_master {
 public:
  /// `physical`: an open device with virtual functions; `bus` is its.
  function_master(device& physical, bus_if& bus) : device_(physical), bus_(bus) {}

  /// Functions that want to begin find somebody there. 0 or a negative errno.
  int start(const std::vector<function_settings>& settings = {});
  /// Serves until the device is closed. In a process of its own.
  void run();

  /// While the function is at work: its driver gets an event of each port. -EINVAL: there is no such function.
  int set_link(unsigned function, function_link link);
  /// Whether the function's driver has made itself known.
  bool is_active(unsigned function) const { return functions_[function].active; }
  const resource_tracker& tracker() const { return tracker_; }
  /// Of a virtual function and a port that it has.
  std::uint64_t mac_of(unsigned function, unsigned port) const { return functions_[function].macs[port - 1]; }
  /// That of a function whose card's `port` has the address `physical`.
  static std::uint64_t mac_of(const function_settings& settings, std::uint64_t physical, unsigned function,
                              unsigned port);
  /// Who has which port.
  const function_ports& ports() const { return ports_; }
  /// Behind device::mirror_ports(), which this goes with: rules of functions are on both ports from now on, and a
  /// function's port has a link while one of the two has. 0 or a negative errno.
  int mirror_ports();
  /// And device::unmirror_ports(): no rule of a function is on another port than its own, whose link it sees.
  int unmirror_ports();
  /// Whose row of the port's table has this GID, in whichever version, and the port: the other one, perhaps, where
  /// ports are mirrored.
  struct gid_owner {
    unsigned function = 0, port = 0;
  };
  std::optional<gid_owner> owner_of(unsigned port, const gid_bytes& gid) const;
  /// The tag of all that the function sends, where the administrator has set a VLAN.
  std::optional<std::uint16_t> forced_tag(unsigned function) const;
  /// Whether the function has registered it.
  bool has_vlan(unsigned function, unsigned port, std::uint16_t vid) const;
  /// Carries management datagrams: QP1 of functions.
  mad_tunnel& mads() { return mads_; }

  struct counters {
    std::uint64_t commands = 0, refused = 0, resets = 0, events = 0;
  };
  const counters& counts() const { return counts_; }

 private:
  using status = abi::status;
  using step = abi::comm::command;
  static constexpr std::uint32_t no_eq = ~std::uint32_t{0};
  struct function_state {
    bool active = false;
    bool resetting = false;  // firmware has reported a reset that is not done
    bool has_last = false;
    step last = step::reset;
    std::uint64_t vhcr = 0;
    std::array<std::uint32_t, 64> event_eqs{};  // by event type; or no_eq
    std::array<std::uint64_t, 2> macs{};
    std::array<std::uint8_t, 2> vlan_index{};  // of settings.vlan in the port's table
    function_settings settings;
  };
  struct request {
    unsigned function = 0;
    abi::opcode op = abi::opcode::nop;
    std::uint8_t op_modifier = 0;
    std::uint32_t modifier = 0;
    std::uint64_t in = 0, out = 0;
    command_channel::mailbox* inbox = nullptr;
    command_channel::mailbox* outbox = nullptr;
  };
  struct command {
    abi::opcode op;
    bool inbox, outbox;
    status (function_master::*execute)(request&);
  };
  static const command commands[];

  // master.cpp
  std::uint32_t channel_read(unsigned function, std::uint64_t reg);
  void channel_answer(unsigned function, std::uint32_t word);
  void serve_channel(unsigned function);
  bool take_step(unsigned function, step what, std::uint16_t parameter);
  bool execute_posted(unsigned function);
  int copy(unsigned from, std::uint64_t from_address, unsigned to, std::uint64_t to_address, std::uint32_t bytes);
  void forward_event(unsigned function, const std::uint8_t* entry);
  void forward_link(unsigned function, unsigned own_port, bool up);
  void forward_port_event(const std::array<std::uint8_t, abi::eqe::bytes>& entry);
  bool has_link(unsigned port) const;
  bool sees_link(unsigned function, bool there) const;
  void clean_up(unsigned function);
  void reset_was_reported(unsigned function);
  bool within(const request& r, std::uint64_t mtt_address, std::uint64_t offset, std::uint64_t bytes,
              unsigned log_page) const;
  /// In the function's name, with its mailboxes.
  status native(const request& r, std::uint64_t* immediate = nullptr);
  status native(const request& r, std::uint32_t modifier);
  static status status_of(int error);

  // wrappers.cpp, queues.cpp, capabilities.cpp
  status alloc_res(request& r);
  status free_res(request& r);
  status alloc_number(request& r, resource what);
  status alloc_entry(request& r, resource what);
  status free_entry(request& r, resource what);
  status write_mtt(request& r);
  status sw2hw_mpt(request& r);
  status hw2sw_mpt(request& r);
  status sw2hw_eq(request& r);
  status hw2sw_eq(request& r);
  status map_eq(request& r);
  status sw2hw_cq(request& r);
  status of_cq(request& r);
  status hw2sw_cq(request& r);
  status sw2hw_srq(request& r);
  status of_srq(request& r);
  status hw2sw_srq(request& r);
  status change_qp(request& r);
  status reset_qp(request& r);
  status of_qp(request& r);
  status qp_attach(request& r);
  status to_software(request& r, resource what);
  bool has_cq_buffer(const request& r) const;
  void with_hardware(resource_tracker::object& o, std::initializer_list<std::pair<resource, std::uint32_t>> needs);
  void hold_for_qp(resource_tracker::object& o, const std::uint8_t* context);
  void hold_path(resource_tracker::object& o, const std::uint8_t* path);
  void own_counter(unsigned function, std::uint8_t* path) const;
  resource_tracker::object* named_qp(const request& r);
  // shares.cpp
  static constexpr resource numbered[] = {resource::qp, resource::cq, resource::srq, resource::xrcd, resource::mpt};
  int keep_for_functions();
  int take_numbers(unsigned function, resource what, std::uint32_t count, std::uint32_t align, std::uint32_t* first);
  void give_number(unsigned function, resource what, std::uint32_t number);
  unsigned vlan_share() const;
  bool has_vlan_room(unsigned function, unsigned port) const;
  std::optional<std::uint32_t> entry_of(unsigned function, resource what, unsigned port, std::uint64_t value) const;
  status change_membership(request& r, const ibv_gid& group, std::uint32_t member, std::uint32_t protocol);
  void leave_groups(unsigned function, std::uint32_t qpn);
  // flows.cpp
  status attach_flow(request& r);
  status detach_flow(request& r);
  int mirror_rule(unsigned function, std::uint32_t number);
  std::optional<gid_owner> owner_in(unsigned port, const gid_bytes& gid) const;
  int unmirror_rules();
  void tell_links();
  void remove_rule(unsigned function, std::uint32_t number);
  status check_flow(const request& r, std::uint8_t* m, std::size_t* bytes) const;
  bool leads_anywhere(unsigned function, std::uint32_t qpn) const;
  status query_if_stat(request& r);
  status clear_counter(std::uint32_t counter);
  bool counts(unsigned function, std::uint32_t counter) const {
    return tracker_.has(function, resource::counter, counter);
  }
  status query_dev_cap(request& r);
  status query_func_cap(request& r);
  status query_port(request& r);
  status of_port(request& r);
  status set_port(request& r);
  status ask(request& r);
  enum class service : std::uint8_t { connection, datagram, ethernet, special };
  status own_path(const request& r, std::uint8_t* path, service of) const;
  bool own_port(unsigned function, std::uint8_t* path) const;
  // special.cpp
  bool is_proxy(const request& r, std::uint32_t qpn) const;
  unsigned port_of_proxy(const request& r, std::uint32_t qpn) const;
  status map_proxy(const request& r, std::uint32_t qpn);
  status free_proxy(const request& r, std::uint32_t qpn);
  status check_special(request& r, std::uint32_t qpn);
  void tell_special_numbers(const request& r) const;
  int start_rates();
  int tell_ports();

  device& device_;
  bus_if& bus_;
  std::vector<function_state> functions_;
  function_ports ports_;
  resource_tracker tracker_;
  std::uint32_t virtual_eqs_ = 0;
  counters counts_;
  mad_tunnel mads_{device_, bus_, *this};
};

}  // namespace rnic::host_driver
