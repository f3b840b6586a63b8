// SPDX-License-Identifier: Apache-2.0
// The commands of a real driver's life, in its order, with its modifiers: all must be answered with OK.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "model/abi/contexts.h"
#include "model/abi/device.h"
#include "model/icm/mgid_hash.h"
#include "testbenches/source_tree.h"
#include "testbenches/unit/firmware/driver_model.h"

namespace rnic {
namespace {

struct recorded {
  std::string name;
  std::uint16_t opcode = 0;
  std::uint8_t op_modifier = 0;
  std::uint32_t first = 0, last = 0;
  bool mailbox_in = false, mailbox_out = false, event = false;
  std::uint64_t in = 0;
  unsigned count = 1;

  /// The recording names the first and the last modifier of a run; the ones between were consecutive before the last.
  std::uint32_t modifier(unsigned i) const { return i == 0 ? first : last - (count - 1 - i); }
};

std::vector<recorded> load() {
  std::ifstream file(rnic::in_source_tree("traces/mlx4-driver-sequence.txt"));
  std::vector<recorded> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string time, opcode, op_modifier, modifier, in, out, how, repeat;
    recorded r;
    words >> time >> r.name >> opcode >> op_modifier >> modifier >> in >> out >> how >> repeat;
    const auto number = [](const std::string& text, std::size_t from) {
      return std::strtoull(text.c_str() + from, nullptr, 16);
    };
    r.opcode = static_cast<std::uint16_t>(number(opcode, 0));
    r.op_modifier = static_cast<std::uint8_t>(number(op_modifier, 7));
    r.first = r.last = static_cast<std::uint32_t>(number(modifier, 7));
    if (const auto dots = modifier.find(".."); dots != std::string::npos)
      r.last = static_cast<std::uint32_t>(number(modifier, dots + 2));
    r.mailbox_in = in == "in=mailbox";
    r.mailbox_out = out == "out=mailbox";
    if (!r.mailbox_in) r.in = number(in, 3);
    r.event = how == "event";
    if (!repeat.empty()) r.count = static_cast<unsigned>(std::strtoul(repeat.c_str() + 1, nullptr, 10));
    // A run with one modifier has it in all; only a range counts up.
    all.push_back(r);
  }
  return all;
}

/// Puts valid content into the mailbox where the recording says that there was one.
class sequence_player {
 public:
  void prepare(const recorded& r, std::uint32_t modifier, unsigned repetition) {
    using abi::opcode;
    d.clear_in();
    switch (static_cast<opcode>(r.opcode)) {
      case opcode::map_fa:
        d.fill_map(modifier, 1);
        break;
      case opcode::map_icm_aux:
        d.fill_map(modifier, 2);
        break;
      case opcode::mod_stat_cfg:
        d.put(abi::mod_stat_cfg_mailbox::log_page_mask, 1);
        break;
      case opcode::map_icm:
        // At run time: contexts of queue pairs beyond the first chunk.
        d.fill_map(1, 6, r.event ? d.icm.qpc + 0x40000 : d.probe_chunks()[repetition]);
        break;
      case opcode::init_hca:
        d.fill_init_hca();
        break;
      case opcode::sw2hw_eq:
        d.fill_eq(modifier == 8 ? 9 : 16);
        break;
      case opcode::sw2hw_cq:
        d.fill_cq(9, 8);
        break;
      case opcode::modify_cq:
        d.put(abi::cqc::period, 16);
        break;
      case opcode::sw2hw_mpt:
        d.fill_mpt(modifier, modifier == 0x80);
        break;
      case opcode::set_port:
        prepare_port(modifier);
        break;
      case opcode::config_dev:
        d.put(abi::config_dev_mailbox::update_flags, abi::config_dev_mailbox::update_roce_v2_port);
        d.put(abi::config_dev_mailbox::roce_v2_port, 4791);
        break;
      case opcode::mad_ifc:
        prepare_mad();
        break;
      case opcode::mgid_hash:
        d.in()[5] = 1;
        break;
      case opcode::write_mcg:
        d.put(abi::mcg::member_count, 1);
        abi::store32(d.in(), abi::mcg::members, 0x20c);
        break;
      case opcode::rst2init_qp:
      case opcode::init2rtr_qp:
      case opcode::rtr2rts_qp:
        d.fill_qp(modifier == 0x20b || modifier == 0x20e ? icm::service::rc : icm::service::mlx, modifier,
                  modifier < 0x20b ? 0x80 : 0x81);
        break;
      default:
        break;
    }
  }
  void prepare_port(std::uint32_t modifier) {
    const std::uint32_t selector = modifier >> 8;
    if (selector == 0) {
      d.put(abi::set_port::flags, abi::set_port::flag_mtu | abi::set_port::flag_roce_mode);
      d.put(abi::set_port::mtu, 1522);
      d.put(abi::set_port::roce_mode, abi::set_port::roce_v1_v2);
    } else if (selector == 2) {
      abi::store64(d.in(), 0, abi::set_port::mac_valid | 0x0002c9000001);
    } else {
      for (std::size_t i = 0; i < 16; ++i) d.in()[i] = static_cast<std::uint8_t>(i + 1);
      d.put(abi::set_port::roce_addr_version, 2);
    }
  }
  void prepare_mad() {
    constexpr std::uint16_t attributes[] = {abi::mad::port_info, abi::mad::node_description, abi::mad::node_info,
                                            abi::mad::pkey_table};
    d.put(abi::mad::base_version, 1);
    d.put(abi::mad::management_class, abi::mad::class_subnet);
    d.put(abi::mad::class_version, 1);
    d.put(abi::mad::method, abi::mad::method_get);
    d.put(abi::mad::attribute, attributes[mads_++ % 4]);
  }

  driver_model d{[] {
    firmware::firmware_config c;
    c.num_ports = 1;  // as the recorded device
    return c;
  }()};

 private:
  unsigned mads_ = 0;
};

}  // namespace

TEST(DriverSequence, EveryCommandIsAnsweredWithOk) {
  const std::vector<recorded> all = load();
  ASSERT_EQ(all.size(), 257u);
  sequence_player p;
  unsigned commands = 0;
  for (const recorded& r : all) {
    for (unsigned i = 0; i < r.count; ++i) {
      const std::uint32_t modifier = r.first == r.last ? r.first : r.modifier(i);
      p.prepare(r, modifier, i);
      std::uint64_t in = r.mailbox_in ? p.d.in_address : r.in;
      if (r.opcode == static_cast<std::uint16_t>(abi::opcode::unmap_icm))
        in = r.event ? p.d.icm.qpc + 0x40000 : p.d.probe_chunks()[i];
      const abi::status s = p.d.run_immediate(static_cast<abi::opcode>(r.opcode), in, modifier, r.op_modifier);
      ASSERT_EQ(s, abi::status::ok) << r.name << " modifier " << std::hex << modifier << " op modifier "
                                    << unsigned{r.op_modifier} << " repetition " << i << " after " << std::dec
                                    << commands << " commands";
      ++commands;
      if (r.name == "MAD_IFC") {
        EXPECT_EQ(p.d.got(abi::mad::mad_status), 0);
      }
    }
  }
  EXPECT_GT(commands, 350u);
  EXPECT_TRUE(p.d.hw.icm.empty()) << "everything was unmapped again";
}

TEST(DriverSequence, CanBeRunTwice) {
  sequence_player p;
  for (unsigned life = 0; life < 2; ++life)
    for (const recorded& r : load())
      for (unsigned i = 0; i < r.count; ++i) {
        const std::uint32_t modifier = r.first == r.last ? r.first : r.modifier(i);
        p.prepare(r, modifier, i);
        std::uint64_t in = r.mailbox_in ? p.d.in_address : r.in;
        if (r.opcode == static_cast<std::uint16_t>(abi::opcode::unmap_icm))
          in = r.event ? p.d.icm.qpc + 0x40000 : p.d.probe_chunks()[i];
        ASSERT_EQ(p.d.run_immediate(static_cast<abi::opcode>(r.opcode), in, modifier, r.op_modifier), abi::status::ok)
            << r.name << life;
      }
}

}  // namespace rnic
