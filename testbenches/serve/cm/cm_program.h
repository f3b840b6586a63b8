// SPDX-License-Identifier: Apache-2.0
// What the programs have that meet through the connection manager, and the programs by name.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>

#include "testbenches/serve/cm/cm_applications.h"
#include "testbenches/serve/cm/cm_service.h"
#include "testbenches/serve/cm/rdma_connection.h"
#include "testbenches/serve/cm/reception.h"
#include "testbenches/serve/host/application.h"
#include "testbenches/serve/host/served_host.h"

namespace rnic::serve {

// As in the tools of rdma-core.
inline constexpr std::uint16_t rping_port = 7174, ucmatose_port = 7471, udaddy_port = 7174, rdma_server_port = 7471,
                               cmtime_port = 7471, rstream_port = 7471, udpong_port = 7174;
inline constexpr std::uint32_t message_size = 100;
inline constexpr unsigned message_count = 10;

/// Between one connection of a client and its next one.
inline constexpr std::uint64_t next_connection_ps = 30 * sim::ps_per_s;

/// What all of them have.
class cm_program {
 public:
  cm_program(served_host& host, cm_service& service, const cm_application_options& o)
      : host_(host), device_(host.device()), service_(service), o_(o), objects_(device_) {}

 protected:
  host_driver::gid_bytes own() const { return device_.port(1).gids[static_cast<std::size_t>(o_.route.gid_index)].id; }
  std::uint16_t port(std::uint16_t tools) const { return o_.port != 0 ? o_.port : tools; }
  std::uint32_t size(std::uint32_t tools) const { return o_.size != 0 ? o_.size : tools; }
  unsigned connections(unsigned tools) const { return o_.connections != 0 ? o_.connections : tools; }
  unsigned count(unsigned tools) const { return o_.count != 0 ? o_.count : tools; }
  host_driver::queue_pair* make_qp(ibv_qp_type type, host_driver::completion_queue* send,
                                   host_driver::completion_queue* receive, unsigned depth) {
    ibv_qp_init_attr init{};
    init.send_cq = send;
    init.recv_cq = receive;
    init.qp_type = type;
    init.cap.max_send_wr = init.cap.max_recv_wr = depth;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    return objects_.qp(init);
  }

  served_host& host_;
  host_driver::device& device_;
  cm_service& service_;
  cm_application_options o_;
  verbs_objects objects_;
};

// Each runs to its end; what goes wrong with the peer is a peer_failure. `clients` is there for servers, with what
// their *_guest makes.
void run_rping(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
               application_result& r);
void run_ucmatose(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                  application_result& r);
void run_udaddy(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                application_result& r);
void run_mckey(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
               application_result& r);
void run_rdma_server(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                     application_result& r);
void run_rdma_xserver(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                      application_result& r);
void run_cmtime(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                application_result& r);
void run_rstream(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                 application_result& r);
void run_udpong(served_host& host, cm_service& service, reception* clients, const cm_application_options& o,
                application_result& r);

// What a server has for a client before it is its turn.
std::unique_ptr<arrival> rping_guest(served_host& host, cm_service& service, const cm_application_options& o);
std::unique_ptr<arrival> ucmatose_guest(served_host& host, cm_service& service, const cm_application_options& o);
std::unique_ptr<arrival> rdma_server_guest(served_host& host, cm_service& service, const cm_application_options& o);
std::unique_ptr<arrival> rdma_xserver_guest(served_host& host, cm_service& service, const cm_application_options& o);
std::unique_ptr<arrival> rstream_guest(served_host& host, cm_service& service, const cm_application_options& o);
std::unique_ptr<arrival> cmtime_guest(served_host& host, cm_service& service, const cm_application_options& o);

}  // namespace rnic::serve
