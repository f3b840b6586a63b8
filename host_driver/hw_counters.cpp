// SPDX-License-Identifier: Apache-2.0
#include "host_driver/hw_counters.h"

#include <cerrno>

#include "model/abi/command_set.h"
#include "model/abi/device.h"

namespace rnic::host_driver {

namespace {

struct row {
  const char* name;
  std::size_t offset;
};
constexpr row basic[] = {{"rq_num_lle", 0x00},  {"sq_num_lle", 0x04}, {"rq_num_lqpoe", 0x08}, {"sq_num_lqpoe", 0x0c},
                         {"rq_num_lpe", 0x18},  {"sq_num_lpe", 0x1c}, {"rq_num_wrfe", 0x20},  {"sq_num_wrfe", 0x24},
                         {"sq_num_mwbe", 0x2c}, {"sq_num_bre", 0x34}, {"sq_num_rire", 0x44},  {"rq_num_rire", 0x48},
                         {"sq_num_rae", 0x4c},  {"rq_num_rae", 0x50}, {"sq_num_roe", 0x54},   {"sq_num_tree", 0x5c},
                         {"sq_num_rree", 0x64}, {"rq_num_rnr", 0x68}, {"sq_num_rnr", 0x6c},   {"rq_num_oos", 0x100},
                         {"sq_num_oos", 0x104}};
constexpr row with_ports[] = {{"rq_num_dup", 0x130}, {"sq_num_to", 0x134}};
constexpr row of_device[] = {{"num_cqovf", abi::diag::cq_overflow}, {"rq_num_udsdprd", 0x118}};

}  // namespace

int query_hw_counters(device& d, unsigned port, std::vector<hw_counter>* out) {
  out->clear();
  if (!d.is_open() || port > d.num_ports()) return -EINVAL;
  if (d.is_virtual()) return -EOPNOTSUPP;
  const bool by_port = (d.caps().features & abi::dev_cap::feature_diag_per_port) != 0;
  if (port != 0 && !by_port) return 0;
  command_channel::mailbox box(d.commands());
  if (const int error = d.commands().read(box, abi::opcode::diag_rprt, port, abi::diag::op_transport)) return error;
  const auto take = [&](const row& r) { out->push_back({r.name, abi::load32(box.data(), r.offset)}); };
  for (const row& r : basic) take(r);
  if (by_port)
    for (const row& r : with_ports) take(r);
  if (port == 0)
    for (const row& r : of_device) take(r);
  return 0;
}

}  // namespace rnic::host_driver
