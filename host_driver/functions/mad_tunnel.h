// SPDX-License-Identifier: Apache-2.0
// Management datagrams of functions, between their proxies and QP1 of the wire.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "host_driver/device.h"
#include "host_driver/functions/cm_ids.h"
#include "host_driver/functions/mad_rules.h"

namespace rnic::host_driver {

class function_master;

/// The physical function's driver has a tunnel for each function and port whose QP1 works, and QP1 of each port (ib/
/// mad.c: mlx4_ib_multiplex_mad, mlx4_ib_demux_mad, mlx4_ib_send_to_slave; ib/cm.c):
///
///   a function's proxy ─ inside the adapter ─► its tunnel ─ here ─► QP1 ─► wire
///   wire ─► QP1 ─ here: whose GID is it? ─► that function's tunnel ─ inside the adapter ─► its proxy
///
/// A function says where its datagram goes. As whom it sends is not its word: its GIDs are those of its window, its MAC
/// is the one that it has been given, and its VLAN one that it has registered or the administrator's. What is not a
/// message of the communication manager, or not right in all of this, is dropped and counted (mad_rules::fault).
///
/// A process of its own works when completions interrupt; it begins with the first tunnel. Tunnels stay until the
/// device is closed, for the next driver of their function.
class mad_tunnel final : public mad_carrier_if {
 public:
  mad_tunnel(device& physical, bus_if& bus, const function_master& functions);
  ~mad_tunnel() override;

  /// `begin`: starts a process that calls run().
  void start(std::function<void()> begin) { begin_ = std::move(begin); }
  int open_tunnel(unsigned function, unsigned port) override;
  void close_tunnel(unsigned function, unsigned port) override;
  /// The function's driver is gone: nothing goes through until the next one opens them anew.
  void close_tunnels(unsigned function);
  /// QP1 of each port works from now on, if that of any does. 0 or a negative errno.
  int mirror_ports();
  /// Serves until the device is closed.
  void run();

  struct counters {
    std::uint64_t to_wire = 0, to_functions = 0;
    std::array<std::uint64_t, mad_rules::faults> from_function{}, from_wire{};  ///< dropped, by reason
  };
  const counters& counts() const { return counts_; }
  const cm_ids& ids() const { return ids_; }

 private:
  using fault = mad_rules::fault;
  /// A queue pair with buffers: of a port (wire), or of a function and port.
  struct endpoint {
    bool is_wire = false, active = false;
    unsigned function = 0, port = 1;
    completion_queue* cq = nullptr;
    queue_pair* qp = nullptr;
    std::uint32_t receive_bytes = 0, send_bytes = 0;
    bus_if::dma_memory receives{}, sends{};
    std::vector<std::uint32_t> free_sends;
  };
  endpoint* find(bool wire, unsigned function, unsigned port) const;
  int open_wires(unsigned port);
  int open(bool wire, unsigned function, unsigned port, endpoint** out);
  int create(endpoint& e);
  void give_back(endpoint& e);
  void post_receive(endpoint& e, std::uint64_t place);
  fault post(endpoint& e, const std::function<void(std::uint8_t*)>& fill, const address_handle& to, std::uint32_t qpn,
             std::uint32_t qkey);
  void serve(endpoint& e);
  fault take_from_function(endpoint& e, const ibv_wc& wc);
  fault take_from_wire(endpoint& e, const ibv_wc& wc, const mac_address& source, std::uint16_t tag);
  fault address_of(const endpoint& e, const std::uint8_t* header, const std::uint8_t* message,
                   address_handle* out) const;
  bool tag_of(const endpoint& e, std::uint16_t asked, std::uint16_t* out) const;

  device& device_;
  bus_if& bus_;
  const function_master& functions_;
  const unsigned buffers_;
  std::function<void()> begin_;
  bool begun_ = false;
  protection_domain* pd_ = nullptr;
  std::vector<std::unique_ptr<endpoint>> endpoints_;
  cm_ids ids_;
  counters counts_;
};

}  // namespace rnic::host_driver
