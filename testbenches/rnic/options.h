// SPDX-License-Identifier: Apache-2.0
// What a user can ask of the program.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace rnic::program {

/// The user's mistake: one line, exit status 2.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Options of every command that runs the model.
struct common_options {
  std::string profile = "connectx3pro_40g";
  std::string config_file;               ///< TOML with parameters, empty: none
  std::vector<std::string> assignments;  ///< path=value
  std::string json_file;
  std::string pcap_file;
  bool overwrite = false;  ///< replace existing result files
  std::uint64_t seed = 1;
  bool quiet = false;
};

/// How two adapters talk in an experiment.
struct traffic_options {
  std::string verb = "write";  ///< write, send, read, cas, fadd
  std::string transport = "rc";
  std::string roce = "v2";
  unsigned ip = 4;
  unsigned vlan = 0;      ///< VID, 0: untagged
  unsigned priority = 0;  ///< 0..7
  unsigned mtu = 2048;
  unsigned inline_bytes = 220;  ///< payloads up to this size are written into the descriptor (perftest's default)
  std::vector<std::uint32_t> sizes;
  unsigned cable_metres = 3;
  unsigned rate_mbps = 0;  ///< 0: the profile's
};

struct latency_options {
  common_options common;
  traffic_options traffic;
  unsigned iterations = 100;
};

struct bandwidth_options {
  common_options common;
  traffic_options traffic;
  unsigned depth = 128;
  unsigned qps = 1;
  unsigned messages = 1000;
  bool bidirectional = false;
};

struct replay_options {
  common_options common;
  std::string capture;
  std::string hold;                 ///< address (IPv4, IPv6 or MAC) of the host whose place the adapter takes
  std::string timing = "captured";  ///< captured or fast
  std::string output;               ///< resulting capture
};

struct info_options {
  common_options common;
};

int run_latency(const latency_options& options);
int run_bandwidth(const bandwidth_options& options);
int run_replay(const replay_options& options);
int run_info(const info_options& options);
int run_parameters(const common_options& options);

}  // namespace rnic::program
