// SPDX-License-Identifier: Apache-2.0
// What is announced as a limit is one: the last value within it is taken, the first one beyond is refused.
#include <gtest/gtest.h>

#include "model/abi/command_set.h"
#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "model/icm/contexts.h"
#include "testbenches/unit/firmware/driver_model.h"

namespace rnic {

using abi::opcode;
using abi::status;
namespace q = abi::qpc;
namespace c = abi::dev_cap;

namespace {

constexpr std::size_t context = abi::qp_mailbox::context, path = context + q::primary_path;

struct device : driver_model {
  explicit device(const firmware::firmware_config& config = {}) : driver_model(config) {
    bring_up();
    fill_cq(8, 5);
    if (run(opcode::sw2hw_cq, 0x80) != status::ok) throw std::runtime_error("no CQ");
    if (run(opcode::query_dev_cap) != status::ok) throw std::runtime_error("no capabilities");
  }
  /// RST2INIT of a new queue pair of this service with one field changed.
  template <class T>
  status create(icm::service service, abi::field<T> f, std::uint64_t value) {
    fill_qp(service, ++qpn, 0x80);
    put(f, value, context);
    return run(opcode::rst2init_qp, qpn);
  }
  /// The same, up to INIT2RTR, which changes the field.
  template <class T>
  status connect(icm::service service, abi::field<T> f, std::uint64_t value) {
    fill_qp(service, ++qpn, 0x80);
    if (run(opcode::rst2init_qp, qpn) != status::ok) return status::internal_error;
    fill_qp(service, qpn, 0x80);
    put(f, value, context);
    return run(opcode::init2rtr_qp, qpn);
  }
  std::uint32_t qpn = 0x200;
};

unsigned log2_above(unsigned bytes) {
  unsigned log = 0;
  while (1u << log < bytes) ++log;
  return log;
}

}  // namespace

TEST(Limits, QueuesAreAsLongAndTheirEntriesAsLargeAsAnnounced) {
  device d;
  const unsigned log_size = d.got(c::log_max_qp_wqes), sq_stride = log2_above(d.got(c::max_sq_bytes)) - 4,
                 rq_stride = log2_above(d.got(c::max_rq_bytes)) - 4;
  using icm::service;
  EXPECT_EQ(d.create(service::rc, q::log_sq_size, log_size), status::ok);
  EXPECT_EQ(d.create(service::rc, q::log_sq_size, log_size + 1), status::bad_param);
  EXPECT_EQ(d.create(service::rc, q::log_sq_stride, sq_stride), status::ok);
  EXPECT_EQ(d.create(service::rc, q::log_sq_stride, sq_stride + 1), status::bad_param);
  EXPECT_EQ(d.create(service::ud, q::log_rq_size, log_size), status::ok);
  EXPECT_EQ(d.create(service::ud, q::log_rq_size, log_size + 1), status::bad_param);
  EXPECT_EQ(d.create(service::ud, q::log_rq_stride, rq_stride), status::ok);
  EXPECT_EQ(d.create(service::ud, q::log_rq_stride, rq_stride + 1), status::bad_param);
  EXPECT_EQ(d.create(service::xrc, q::rq_size_stride, 0xff), status::ok) << "it has no receive queue";
}

TEST(Limits, SharedReceiveQueues) {
  device d;
  const unsigned log_size = d.got(c::log_max_srq_wqes), stride = log2_above(d.got(c::max_rq_bytes)) - 4;
  namespace f = abi::srqc;
  const auto create = [&d](std::uint32_t srqn, unsigned size, unsigned log_stride) {
    const auto b = d.make_buffer(4096);
    d.clear_in();
    d.put(f::srqn, srqn);
    d.put(f::log_size, size);
    d.put(f::log_stride, log_stride);
    d.put(f::pd, 3);
    abi::store_mtt(d.in(), f::mtt_high, f::mtt_low, b.mtt);
    return d.run(opcode::sw2hw_srq, srqn);
  };
  EXPECT_EQ(create(0x40, log_size, 1), status::ok);
  EXPECT_EQ(create(0x41, log_size + 1, 1), status::bad_param);
  EXPECT_EQ(create(0x42, 4, stride), status::ok);
  EXPECT_EQ(create(0x43, 4, stride + 1), status::bad_param);
}

TEST(Limits, ReadsThatAResponderHoldsAndTheMtuOfConnections) {
  device d;
  const unsigned depth = d.got(c::log_max_responder_rdma);
  using icm::service;
  EXPECT_EQ(d.connect(service::rc, q::responder_rdma, depth), status::ok);
  EXPECT_EQ(d.connect(service::rc, q::responder_rdma, depth + 1), status::bad_param);
  EXPECT_EQ(d.connect(service::uc, q::responder_rdma, depth + 1), status::ok) << "UC has no READs";
  for (const service s : {service::rc, service::uc, service::xrc}) {
    EXPECT_EQ(d.connect(s, q::mtu_msgmax, 5 << 5 | 31), status::ok);
    EXPECT_EQ(d.connect(s, q::mtu_msgmax, 6 << 5 | 31), status::bad_param);
    EXPECT_EQ(d.connect(s, q::mtu_msgmax, 0xff), status::bad_param);
  }
  EXPECT_EQ(d.connect(service::mlx, q::mtu_msgmax, 0xff), status::ok) << "what the kernel's driver says of its rings";
}

/// Of a queue pair that runs: nothing has changed when it is refused.
TEST(Limits, ARunningQueuePairKeepsThem) {
  firmware::firmware_config one_port;
  one_port.num_ports = 1;
  for (const bool two : {true, false}) {
    device d(two ? firmware::firmware_config{} : one_port);
    ASSERT_EQ(d.make_rts(icm::service::rc, 0x20b, 0x80), status::ok);
    d.fill_qp(icm::service::rc, 0x20b, 0x80, abi::qp_mailbox::opt_sched_queue);
    d.put(abi::path::sched_queue, 0xc3, path);  // port 2
    EXPECT_EQ(d.run(opcode::rts2rts_qp, 0x20b), two ? status::ok : status::bad_param);
    d.fill_qp(icm::service::rc, 0x20b, 0x80, abi::qp_mailbox::opt_rra_max);
    d.put(q::responder_rdma, 5, context);
    EXPECT_EQ(d.run(opcode::rts2rts_qp, 0x20b), status::bad_param);
    const auto rs = d.hardware_context<icm::responder_context>(d.icm.qpc + 0x20b * 256 + 128);
    EXPECT_EQ(rs.log_max_rd_atomic, 3);
    EXPECT_EQ(rs.dest.port, two ? 1 : 0);
  }
}

/// An event queue's interrupt is one of the function's.
TEST(Limits, VectorsOfEventQueues) {
  firmware::firmware_config config;
  config.msix_vectors = 40;
  driver_model d(config);
  d.bring_up();
  d.fill_eq(4);
  d.put(abi::eqc::vector, 39);
  EXPECT_EQ(d.run(opcode::sw2hw_eq, 9), status::ok);
  d.fill_eq(4);
  d.put(abi::eqc::vector, 40);
  EXPECT_EQ(d.run(opcode::sw2hw_eq, 10), status::bad_param);
}

/// The interface's MTU and what a driver adds to it: two VLAN tags, address fields, FCS.
TEST(Limits, MtuOfAPort) {
  device d;
  ASSERT_EQ(d.run(opcode::query_port, 1), status::ok);
  const unsigned most = d.got(abi::query_port::max_eth_mtu) + 14u + 8u + 4u;
  const auto set = [&d](unsigned mtu) {
    d.clear_in();
    d.put(abi::set_port::flags, abi::set_port::flag_mtu);
    d.put(abi::set_port::mtu, mtu);
    return d.run(opcode::set_port, 1, 1);
  };
  EXPECT_EQ(set(most), status::ok);
  EXPECT_EQ(set(most + 1), status::bad_param);
}

/// Tunnels are not announced.
TEST(Limits, NoPortOfTunnels) {
  namespace f = abi::config_dev_mailbox;
  device d;
  d.clear_in();
  d.put(f::update_flags, f::update_vxlan_port);
  d.put(f::vxlan_port, 4789);
  EXPECT_EQ(d.run(opcode::config_dev), status::bad_param);
}

/// A group has as many members as announced, where entries are long enough for them.
TEST(Limits, MembersOfAMulticastGroup) {
  device d;
  const std::uint32_t most = 1u << d.got(c::log_max_mcg_qps);
  ASSERT_EQ(d.run(opcode::close_hca), status::ok);
  d.fill_init_hca();
  d.put(abi::init_hca::log_mcg_bytes, 11);
  ASSERT_EQ(d.run(opcode::init_hca), status::ok);
  const auto write = [&d](std::uint32_t members) {
    d.clear_in();
    d.put(abi::mcg::member_count, members);
    return d.run(opcode::write_mcg, 5);
  };
  EXPECT_EQ(write(most), status::ok);
  EXPECT_EQ(write(most + 1), status::exceed_lim);
}

}  // namespace rnic
