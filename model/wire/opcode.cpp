// SPDX-License-Identifier: Apache-2.0
// The table of BTH opcodes (IBA volume 1, table 35 and annex A17; adapter data plane C.3).
#include <initializer_list>

#include "model/wire/packet.h"

namespace rnic::wire {

namespace {

/// Name of each operation, by its 5-bit code.
constexpr const char* operation_names[32] = {"SEND First",
                                             "SEND Middle",
                                             "SEND Last",
                                             "SEND Last Immediate",
                                             "SEND Only",
                                             "SEND Only Immediate",
                                             "RDMA WRITE First",
                                             "RDMA WRITE Middle",
                                             "RDMA WRITE Last",
                                             "RDMA WRITE Last Immediate",
                                             "RDMA WRITE Only",
                                             "RDMA WRITE Only Immediate",
                                             "RDMA READ Request",
                                             "RDMA READ Response First",
                                             "RDMA READ Response Middle",
                                             "RDMA READ Response Last",
                                             "RDMA READ Response Only",
                                             "Acknowledge",
                                             "Atomic Acknowledge",
                                             "CmpSwap",
                                             "FetchAdd",
                                             "RESYNC",
                                             "SEND Last Invalidate",
                                             "SEND Only Invalidate",
                                             "",
                                             "",
                                             "",
                                             "",
                                             "",
                                             "",
                                             "",
                                             ""};
constexpr const char* transport_names[8] = {"RC ", "UC ", "RD ", "UD ", "CNP ", "XRC ", "reserved ", "manufacturer "};

struct name_store {
  char text[256][40];
};

constexpr void append(char* to, unsigned& at, const char* from) {
  for (; *from != 0; ++from) to[at++] = *from;
}

constexpr name_store make_names() {
  name_store s{};
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    unsigned at = 0;
    if (opcode == opcode_cnp) {
      append(s.text[opcode], at, "CNP");
      continue;
    }
    append(s.text[opcode], at, transport_names[opcode >> 5]);
    append(s.text[opcode], at, operation_names[opcode & 0x1f]);
  }
  return s;
}

constexpr name_store names = make_names();

constexpr bool is_known(std::uint8_t opcode) {
  const unsigned op = opcode & 0x1f;
  switch (transport_of(opcode)) {
    case transport::rc:
    case transport::xrc:
      return op <= 0x14 || op == 0x16 || op == 0x17;
    case transport::uc:
      return op <= 0x0b;
    case transport::rd:
      return op <= 0x15;
    case transport::ud:
      return op == 0x04 || op == 0x05;
    case transport::cnp:
      return opcode == opcode_cnp;
    case transport::manufacturer:
      return op == 0x13 || op == 0x14;
  }
  return false;
}

constexpr bool any_of(operation o, std::initializer_list<operation> set) {
  for (const operation s : set)
    if (o == s) return true;
  return false;
}

constexpr std::uint8_t extension_bytes(const opcode_traits& t) {
  return static_cast<std::uint8_t>((t.rdeth ? 4 : 0) + (t.xrceth ? 4 : 0) + (t.deth ? 8 : 0) + (t.reth ? 16 : 0) +
                                   (t.atomic_eth ? 28 : 0) + (t.mask_eth ? 16 : 0) + (t.aeth ? 4 : 0) +
                                   (t.atomic_ack_eth ? 8 : 0) + (t.immediate ? 4 : 0) + (t.ieth ? 4 : 0));
}

constexpr opcode_traits make_traits(std::uint8_t opcode) {
  using op = operation;
  opcode_traits t{};
  t.name = names.text[opcode];
  t.known = is_known(opcode);
  if (!t.known) {
    t.name = "unknown";
    return t;
  }
  if (opcode == opcode_cnp) {
    t.payload = t.first = t.last = t.response = true;
    return t;
  }
  const op o = operation_of(opcode);
  const transport c = transport_of(opcode);
  const unsigned code = opcode & 0x1f;
  t.response = code >= 0x0d && code <= 0x12;
  t.request = !t.response;
  t.rdeth = c == transport::rd;
  t.deth = c == transport::ud || (c == transport::rd && t.request);
  t.xrceth = c == transport::xrc && t.request;
  t.reth = any_of(o, {op::write_first, op::write_only, op::write_only_immediate, op::read_request});
  t.atomic_eth = any_of(o, {op::compare_swap, op::fetch_add});
  t.mask_eth = c == transport::manufacturer && o == op::compare_swap;
  t.aeth = t.response && o != op::read_response_middle;
  t.atomic_ack_eth = o == op::atomic_acknowledge;
  t.immediate =
      any_of(o, {op::send_last_immediate, op::send_only_immediate, op::write_last_immediate, op::write_only_immediate});
  t.ieth = any_of(o, {op::send_last_invalidate, op::send_only_invalidate});
  t.payload = !any_of(
      o, {op::read_request, op::acknowledge, op::atomic_acknowledge, op::compare_swap, op::fetch_add, op::resync});
  const bool middle = any_of(o, {op::send_middle, op::write_middle, op::read_response_middle});
  const bool starts = any_of(o, {op::send_first, op::write_first, op::read_response_first});
  const bool ends = any_of(o, {op::send_last, op::send_last_immediate, op::send_last_invalidate, op::write_last,
                               op::write_last_immediate, op::read_response_last});
  t.first = !middle && !ends;
  t.last = !middle && !starts;
  t.extension_bytes = extension_bytes(t);
  return t;
}

struct traits_store {
  opcode_traits of[256];
};

constexpr traits_store make_table() {
  traits_store s{};
  for (unsigned opcode = 0; opcode < 256; ++opcode) s.of[opcode] = make_traits(static_cast<std::uint8_t>(opcode));
  return s;
}

constexpr traits_store table = make_table();

}  // namespace

const opcode_traits& traits(std::uint8_t opcode) { return table.of[opcode]; }

}  // namespace rnic::wire
