// SPDX-License-Identifier: Apache-2.0
// The network of a TOML file: hosts, switches, cables and their parameters, which files of flows and of experiments
// have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host_driver/hosts/network.h"
#include "model/fabric/topology.h"
#include "model/sim/toml_section.h"

namespace rnic::program {

struct network_file {
  std::string kind;  ///< of the topology, as in the file
  fabric::topology shape;
  std::vector<std::pair<std::string, std::string>> parameters;       ///< path and value
  std::vector<hosts::network_config::host_setting> host_parameters;  ///< in which hosts differ
  std::vector<hosts::network_config::vlan_setting> vlans;
  std::optional<std::uint64_t> seed;  ///< none: that of the run
  hosts::connection_options common;   ///< RoCE version, IP version and VLAN of all hosts
};

// Errors of all of these are sim::config_error: one line with file, line, field and what is legal.

/// Why a host of a network refuses adapter.port.rate_mbps.
inline constexpr const char* port_has_rate_of_cable =
    "a port has the rate of its cable, expected rate_mbps in [topology] or [[cable]]";
/// Fields of the file that read_network() reads, for toml_section::allow().
std::vector<const char*> network_fields();
/// Without a topology two hosts are joined by a cable, or it is missed.
enum class topology_in_file : std::uint8_t { needed, may_be_missing };
/// `file` is the whole text, called `name`.
void read_network(const sim::toml_section& file, const std::string& name, network_file& f,
                  topology_in_file rule = topology_in_file::needed);

inline constexpr std::uint64_t longest_us = 1'000'000'000;

/// The table at `key`, or nullptr.
const toml::table* table_at(const sim::toml_section& s, const char* key);
/// A host's name at `key`, or a list of them; as numbers. `of` is the table that needs it.
std::vector<unsigned> read_hosts(const sim::toml_section& s, const toml::node& of, const char* key,
                                 const fabric::topology& shape);
/// Ports of a flow: a number or a list of two; empty without the field.
std::vector<unsigned> read_ports(const sim::toml_section& s);
/// That these hosts have a cable there.
void check_ports(const sim::toml_section& s, const std::vector<unsigned>& ports, const std::vector<unsigned>& hosts,
                 const fabric::topology& shape);
/// start_us of a flow, 0 without it: before the end of the file's duration_us, where that is not 0.
std::uint64_t read_start(const sim::toml_section& s, std::uint64_t duration_us);
/// That a way leads from one host to the other, at these ports of both, or at the first that have a cable. `of` is the
/// table.
void check_way(const sim::toml_section& s, const toml::node& of, const std::vector<unsigned>& ports, unsigned from,
               unsigned to, const fabric::topology& shape);
/// roce, transport, ip, vlan, priority, traffic_class, ack_timeout and mtu, where they are given.
void read_packets(const sim::toml_section& s, hosts::connection_options& c);
/// Frames without a tag have no priority. `of` is the table.
void check_priority(const sim::toml_section& s, const toml::node& of, const hosts::connection_options& c);
/// The longest message of `bytes` fits into a datagram; `key` names where it is from.
void check_datagram(const sim::toml_section& s, const char* key, std::uint32_t bytes,
                    const hosts::connection_options& c);
/// "a, b, c"
std::string listed(const std::vector<std::string>& names);

/// Calls `read` with each table of a list of them, and its number from 1; nothing where there is none.
template <class Read>
void read_list(const sim::toml_section& file, const char* key, Read read) {
  const toml::node* n = file.find(key);
  if (n == nullptr) return;
  const toml::array* list = n->as_array();
  if (list == nullptr) file.fail(*n, std::string(key) + ": expected a list of tables, [[" + key + "]]");
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (!list->get(i)->is_table())
      file.fail(*list->get(i), std::string(key) + " " + std::to_string(i + 1) + ": not a table");
    read(*list->get(i), i + 1);
  }
}

}  // namespace rnic::program
