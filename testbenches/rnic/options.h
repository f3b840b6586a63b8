// SPDX-License-Identifier: Apache-2.0
// What a user can ask of the program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testbenches/bench/usage_error.h"

namespace rnic::program {

/// Options of every command that runs the model.
struct common_options {
  std::string profile = "connectx3pro_40g";
  std::string config_file;                   ///< TOML with parameters, empty: none
  std::vector<std::string> assignments;      ///< path=value
  std::vector<std::string> traffic_classes;  ///< what is written into tc/PORT/traffic_class, in this order
  std::string ttl;                           ///< what is written into tc/PORT/ttl, empty: nothing
  std::string json_file;
  std::string pcap_file;
  bool pcap_fcs = false;   ///< frames in captures end with their FCS
  bool overwrite = false;  ///< replace existing result files
  std::uint64_t seed = 1;
  bool seed_given = false;  ///< it is the user's, and goes before that of a file
  bool quiet = false;
};

/// What happens to frames on the cable.
struct fault_options {
  std::string file;                                          ///< fault plan, empty: none
  bool pcap_before = false;                                  ///< captures show what was sent, not what arrives
  double drop = 0, duplicate = 0, reorder = 0, corrupt = 0;  ///< percent of frames
};

/// How two adapters talk in an experiment.
struct traffic_options {
  std::string verb = "write";    ///< a name of workloads::verbs()
  std::string transport = "rc";  ///< rc, uc, ud or xrc
  std::string roce = "v2";
  unsigned ip = 4;
  unsigned vlan = 0;      ///< VID, 0: untagged
  unsigned priority = 0;  ///< 0..7
  unsigned mtu = 2048;
  unsigned inline_bytes = 220;  ///< payloads up to this size are written into the descriptor (perftest's default)
  unsigned inline_receive = 0;  ///< messages that take a receive stay in it up to this size; 0: none
  std::vector<std::uint32_t> sizes;
  unsigned cable_metres = 3;
  std::vector<unsigned> ports{1};   ///< with a cable, 1 or 2 or both; latency is that of the first
  std::vector<unsigned> rate_mbps;  ///< of all ports, or one of each of `ports`; empty: the profile's
  std::string topology;             ///< network, file or name, of which the two hosts are; empty: a cable joins them
  std::string between;              ///< "A,B": names of the two hosts; empty: the first and the last one
  bool no_flows = false;            ///< the network's own flows are left out
  unsigned settle_us = 0;           ///< that these have before the two hosts begin
  std::vector<std::string> given;   ///< options that the user has given: the others may be said by the network's file
};

/// A trace of a run (program::run_watch).
struct trace_options {
  bool any() const { return !file.empty() || !konata.empty() || !wave.empty(); }

  std::string file;                  ///< empty: none
  std::string konata;                ///< log for Konata, empty: none
  double from_us = 0, until_us = 0;  ///< of messages that are posted then, since all hosts are ready; 0: to the end
  std::vector<std::string> flows;    ///< names; empty: all
  std::string wave;                  ///< waveform (bench::network_wave), empty: none
  std::vector<std::string> wave_of;  ///< patterns; empty: bench::wave_config's
};

struct latency_options {
  common_options common;
  std::string file;    ///< of `rnic run` that does the same, for the results
  bool print = false;  ///< only shows the file of `rnic run` that does the same
  traffic_options traffic;
  fault_options faults;
  trace_options trace;
  unsigned iterations = 100;
  unsigned warm_up = 4;  ///< messages of each size before the measured ones: caches on chip are filled
};

struct bandwidth_options {
  common_options common;
  std::string file;    ///< of `rnic run` that does the same, for the results
  bool print = false;  ///< only shows the file of `rnic run` that does the same
  traffic_options traffic;
  fault_options faults;
  trace_options trace;
  unsigned depth = 128;
  unsigned receive_depth = 512;  ///< as perftest's
  unsigned reads = 16;           ///< READs and atomics under way per queue pair
  unsigned signal_every = 0;     ///< messages for which there is one completion; 0: of half a window, at most 100
  unsigned qps = 1;
  unsigned messages = 0;  ///< per size, over all queue pairs of a direction; 0: messages_of()
  bool bidirectional = false;
};
/// Of this size: `messages`, or so many that beginning and end, when not all that may be under way is, are little of
/// the run: 1000 for each 128 that may be under way, until 256 MiB of payload have gone; 1000 to 4 million, over UC and
/// UD at least 10'000 or, where that is less, 16 MiB.
std::uint64_t messages_of(const bandwidth_options& o, std::uint32_t size);

struct soak_options {
  common_options common;
  traffic_options traffic;
  fault_options faults;
  std::uint64_t messages = 100'000;
  unsigned qps = 64;
  unsigned depth = 16;
  std::uint32_t largest = 65'536;
  std::vector<std::string> verbs;  ///< empty: all
  unsigned ack_timeout = 12;       ///< 4.096 us * 2^n
  unsigned retries = 7;
  unsigned rnr_retries = 7;  ///< 7: for ever
};

struct replay_options {
  common_options common;
  std::string capture;
  std::string hold;                 ///< address (IPv4, IPv6 or MAC) of the host whose place the adapter takes
  std::string timing = "captured";  ///< captured or fast
  unsigned port = 1;                ///< of the adapter, 1 or 2, whose cable the capture is of
  std::string output;               ///< resulting capture
  std::vector<std::string> ignore;  ///< names of replay::compared_fields()
  std::string expect = "fatal";     ///< which differences make the exit status 1: all, fatal or none
  bool ignore_icrc = false;
  std::string also;  ///< second capture of the same run
};

struct serve_options {
  common_options common;
  std::vector<std::string> links;      ///< one for each adapter, or with `topology` one for each real peer: HOST=LINK
  std::string link;                    ///< of_adapter(): its one; empty in a topology
  std::string second_link;             ///< of_adapter(): that of port 2
  bool bonded = false;                 ///< adapters have two links each, one for each port
  std::string topology;                ///< network, file or name, at whose switches adapters and links are; empty: none
  std::vector<std::string> hosts;      ///< of the topology that are adapters: those without a link
  std::vector<std::string> addresses;  ///< IPv4 or IPv6; with @N that of adapter N
  std::vector<std::string> macs;       ///< of the first adapters
  std::string mac;                     ///< of_adapter(): empty: default_mac
  bool vlan_given = false;             ///< and so is the VLAN, which is a topology's otherwise
  std::uint64_t default_mac = 0;       ///< of adapters without one of the user's: the first's, low 48 bits
  unsigned vlan = 0;                   ///< VID of the addresses, 0: untagged
  std::string roce;                    ///< version whose GID an application takes, empty: see serve_station::gid_index
  int gid_index = -1;                  ///< GID of an application, -1: the first address's
  unsigned duration_s = 0;             ///< real time, 0: until a signal comes or the application has ended
  std::string app;                     ///< empty: none
  bool server = false;
  std::string client;                ///< host where the server listens
  std::vector<std::string> scripts;  ///< where the commands of --app script come from, one for each adapter
  std::string script;                ///< of_adapter(): its one
  unsigned igmp_version = 0;         ///< 2 or 3, 0: as the querier of the network
  std::string group;                 ///< multicast address that mckey receives from
  std::string exchange;    ///< IP address of this machine where the exchange of addresses listens, empty: loopback
  std::string qperf_test;  ///< client, empty: rc_bw
  unsigned port = 0;       ///< 0: what the real tool takes
  unsigned size = 0;       ///< bytes, 0: what the real tool takes
  unsigned mtu = 1024;
  unsigned iterations = 0;  ///< 0: what the real tool takes
  unsigned receive_depth = 500;
  unsigned send_depth = 128;
  unsigned reads = 0;                    ///< of perftest: READs and atomics under way, 0: what both adapters take
  unsigned queue_pairs = 0;              ///< or connections, 0: what the real tool takes
  std::string connection = "RC";         ///< of perftest: RC, UC or UD; rdma_xserver: RC or XRC
  std::string atomic = "FETCH_AND_ADD";  ///< of perftest: or CMP_AND_SWAP
  bool bidirectional = false;            ///< of perftest; udpong: the server sends back
  bool all_sizes = false;                ///< of perftest and rstream
  unsigned test_seconds = 0;             ///< of perftest: instead of iterations
  bool rdma_cm = false;                  ///< of perftest: the connection manager connects its queue pairs
  bool talk_over_cm = false;             ///< of perftest: instead of TCP, and that alone
  unsigned priority = 0;
  int tos = -1;                    ///< of applications over the connection manager, -1: driver.cma_roce_tos
  std::uint8_t traffic_class = 0;  ///< serve_station: what follows from it
  unsigned ack_timeout = 14;
  unsigned repeat = 1;  ///< runs of the application, 0: for ever
};

struct info_options {
  common_options common;
};

struct calibrate_options {
  common_options common;
  std::vector<std::string> only;  ///< points whose id begins so; empty: all
  bool held_out = false;          ///< the points looked at afterwards, instead of the calibration set
  unsigned jobs = 0;              ///< processes at a time, 0: as many as the machine has processors
};

struct dma_options {
  common_options common;
  std::vector<std::string> tests{"lat_rd", "bw_rd", "bw_wr", "bw_rdwr"};  ///< bench::dma_test_names()
  std::vector<std::uint32_t> sizes{64, 128, 256, 512, 1024, 2048};
  std::uint32_t offset = 0;
  std::uint64_t window = 8192;
  std::string pattern = "random";   ///< or sequential
  std::string cache = "host";       ///< what of the window is cached first: none, host or device
  std::string node = "local";       ///< or remote
  std::string card = "pcie-bench";  ///< or adapter
  std::uint64_t llc = 15u << 20;    ///< bytes
  unsigned count = 0;               ///< transfers that count, 0: as the test needs
  unsigned jobs = 0;                ///< processes at a time, 0: as many as the machine has processors
};

struct fabric_options {
  common_options common;
  trace_options trace;
  std::string file;        ///< network and flows, or the name of one that comes with the program
  bool print = false;      ///< only shows the file
  std::string capture_at;  ///< host on whose cable --pcap looks, empty: the first
  unsigned threads = 0;    ///< that serve hosts, 0: as many as there are processors
};

struct run_options {
  common_options common;
  trace_options trace;
  std::string file;        ///< the experiment
  bool print = false;      ///< only shows the file
  std::string capture_at;  ///< host on whose cable --pcap looks, empty: the first
  unsigned threads = 0;    ///< that serve hosts, 0: as many as there are processors
};

struct compare_options {
  std::string reference, other;         ///< results in JSON
  std::vector<std::string> tolerances;  ///< "PERCENT" or "FIELD=PERCENT"
  std::vector<std::string> fields;      ///< patterns; empty: what is usually compared
  std::vector<std::string> without;     ///< patterns
  std::string junit_file, json_file;
  bool overwrite = false;
};

struct sweep_options {
  std::string file;
  std::string folder;
  unsigned jobs = 0;   ///< processes at a time, 0: as many as the machine has processors
  unsigned point = 0;  ///< only this one, from 1; 0: all
  bool collect = false, slurm = false, quiet = false;
};

struct explain_options {
  std::string file;    ///< experiment of `rnic run`, or a result of it, of latency or of bandwidth
  std::string metric;  ///< field of the result, empty: the usual one
  std::vector<std::string> assignments;
  double more = 10;   ///< per cent
  unsigned jobs = 0;  ///< processes at a time, 0: as many as the machine has processors
  std::string json_file;
  bool overwrite = false, quiet = false;
};

struct report_options {
  std::vector<std::string> places;  ///< folders and files
  std::string output = "report.html";
  std::string title;  ///< empty: of the places
  bool overwrite = false;
};

int run_calibrate(const calibrate_options& options);
int run_latency(const latency_options& options);
int run_bandwidth(const bandwidth_options& options);
int run_soak(const soak_options& options);
int run_dma(const dma_options& options);
int run_replay(const replay_options& options);
int run_serve(const serve_options& options);
int run_info(const info_options& options);
int run_fabric(const fabric_options& options);
int run_sweep(const sweep_options& options);
int run_explain(const explain_options& options);
int run_report(const report_options& options);
int run_compare(const compare_options& options);
/// `text` is the experiment.
int run_experiment(const run_options& options, const std::string& text);
int run_parameters(const common_options& options);

}  // namespace rnic::program
