// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/serve/serve_applications.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "model/wire/ethernet.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/results.h"
#include "testbenches/serve/rsocket/rsocket_datagrams.h"

namespace rnic::program {

namespace {

ibv_qp_type service_of(const std::string& app) {
  if (app == "uc_pingpong") return IBV_QPT_UC;
  return app == "ud_pingpong" ? IBV_QPT_UD : IBV_QPT_RC;
}

}  // namespace

bool is_script(const serve_options& o) { return o.app == "script"; }
bool is_qperf(const serve_options& o) { return o.app == "qperf"; }

bool meets_over_cm(const serve_options& o) {
  return o.rdma_cm || o.talk_over_cm || is_script(o) || is_qperf(o) || serve::is_cm_application(o.app);
}

std::uint16_t listening_port(const serve_options& options) {
  const std::uint16_t usual = is_qperf(options) ? serve::qperf_options{}.port : std::uint16_t{18515};
  return options.port != 0 ? static_cast<std::uint16_t>(options.port) : usual;
}

serve::pingpong_options pingpong_from(const serve_options& options, int gid_index) {
  serve::pingpong_options o;
  o.type = service_of(options.app);
  o.server = options.client;
  o.port = listening_port(options);
  o.size = options.size != 0 ? options.size : o.type == IBV_QPT_UD ? 1024u : 4096u;
  o.mtu = options.mtu;
  o.iterations = options.iterations != 0 ? options.iterations : options.app == "xsrq_pingpong" ? 5 : 1000;
  o.receive_depth = options.receive_depth;
  if (options.queue_pairs != 0) o.queue_pairs = options.queue_pairs;
  o.service_level = options.priority;
  o.ack_timeout = options.ack_timeout;
  o.seed = options.common.seed;
  o.gid_index = gid_index;
  return o;
}

serve::cm_application_options cm_application_from(const serve_options& options, int gid_index) {
  serve::cm_application_options o;
  o.app = options.app;
  o.client = !options.client.empty();
  const std::string& address = options.app == "mckey" && !o.client ? options.group : options.client;
  if (!address.empty()) o.peer = *wire::parse_gid(address);
  o.port = static_cast<std::uint16_t>(options.port);
  o.size = options.size;
  o.count = options.iterations;
  o.all_sizes = options.all_sizes;
  o.connections = options.queue_pairs;
  o.echo = options.bidirectional;
  o.xrc = options.connection == "XRC";
  o.route.gid_index = gid_index;
  o.route.service_level = options.priority;
  o.route.traffic_class = options.traffic_class;
  o.route.mtu = options.mtu;
  o.route.seed = options.common.seed;
  return o;
}

serve::qperf_options qperf_from(const serve_options& options, int gid_index) {
  serve::qperf_options o;
  if (!options.qperf_test.empty()) o.test = options.qperf_test;
  o.client = !options.client.empty();
  o.server = options.exchange.empty() ? options.client : options.exchange;
  if (const auto peer = wire::parse_gid(options.client)) o.peer = *peer;
  o.port = listening_port(options);
  o.size = options.size;
  o.messages = options.iterations;
  if (options.test_seconds != 0) o.seconds = options.test_seconds;
  o.route.gid_index = gid_index;
  o.route.service_level = options.priority;
  o.route.traffic_class = options.traffic_class;
  o.route.mtu = options.mtu;
  o.route.seed = options.common.seed;
  return o;
}

serve::perftest_options perftest_from(const serve_options& options, int gid_index) {
  serve::perftest_options o = *serve::find_perftest(options.app);
  o.type = options.connection == "UC" ? IBV_QPT_UC : options.connection == "UD" ? IBV_QPT_UD : IBV_QPT_RC;
  o.compare_swap = options.atomic == "CMP_AND_SWAP";
  o.both_directions = options.bidirectional;
  o.all_sizes = options.all_sizes;
  o.client = !options.client.empty();
  o.server = options.client;
  if (options.rdma_cm || options.talk_over_cm) {
    o.meeting = options.rdma_cm ? serve::perftest_meeting::cm : serve::perftest_meeting::cm_talk;
    if (const auto peer = wire::parse_gid(options.client)) o.peer = *peer;
  }
  o.port = listening_port(options);
  o.size = options.size;
  o.mtu = options.mtu;
  o.iterations = options.iterations;
  o.seconds = options.test_seconds;
  if (options.queue_pairs != 0) o.queue_pairs = options.queue_pairs;
  o.depth = options.send_depth;
  o.receive_depth = options.receive_depth;
  o.reads = options.reads;
  o.service_level = options.priority;
  o.traffic_class = options.traffic_class;
  o.ack_timeout = options.ack_timeout;
  o.seed = options.common.seed;
  o.gid_index = gid_index;
  return o;
}

nlohmann::json to_json(const std::string& app, const serve::application_result& run) {
  nlohmann::json j = {{"app", app},
                      {"ok", run.ok},
                      {"error", run.error},
                      {"local", run.local},
                      {"remote", run.remote},
                      {"sent", run.sent},
                      {"received", run.received},
                      {"wrong_bytes", run.wrong_bytes},
                      {"took_us", to_us(run.took_ps)}};
  if (run.commands != 0) {
    j["commands"] = run.commands;
    j["refused"] = run.refused;
  }
  if (run.message_bytes == 0) return j;
  j["message_bytes"] = run.message_bytes;
  j["places"] = {{"stride", run.places.stride}, {"count", run.places.count}};
  j["memory"] = nlohmann::json::array();
  for (const auto& m : run.memory)
    j["memory"].push_back({{"qpn", m.qpn}, {"peer_qpn", m.peer_qpn}, {"crc32", m.crc32}});
  if (run.counted) j["counted"] = *run.counted;
  return j;
}

namespace {

void check_qperf(const serve_options& o) {
  if (o.all_sizes || o.rdma_cm || o.talk_over_cm || o.reads != 0)
    throw usage_error("--all, --rdma-cm, --talk-rdma-cm and --outs are of perftest's tools");
  if (o.server && (!o.qperf_test.empty() || o.size != 0 || o.iterations != 0 || o.test_seconds != 0))
    throw usage_error("--app qperf --server: test, size and duration are the client's to say");
  const std::string test = o.qperf_test.empty() ? "rc_bw" : o.qperf_test;
  if (!serve::is_qperf_test(test))
    throw usage_error("--test " + test + ": not a test of qperf on a reliable connection, see --help");
  if (o.iterations != 0 && test != "rc_bw") throw usage_error("--iterations: of qperf's tests only rc_bw counts");
  if (o.iterations != 0 && o.test_seconds != 0) throw usage_error("--seconds: takes no --iterations");
  const bool rate = test.size() > 3 && test.substr(test.size() - 3) == "_mr";
  if (rate && o.size != 0) throw usage_error("--size: an atomic has 8 bytes");
  if (test.rfind("ver_", 0) == 0 && o.size != 0 && o.size < 8) throw usage_error("--size: an atomic has 8 bytes");
}

void check_perftest(const serve_options& o) {
  const serve::perftest_options t = perftest_from(o, 0);
  const bool send = t.verb == serve::perftest_verb::send, write = t.verb == serve::perftest_verb::write;
  if (t.type == IBV_QPT_UC && !send && !write) throw usage_error("--connection UC: " + o.app + " has RC only");
  if (t.type == IBV_QPT_UD && !send) throw usage_error("--connection UD: only ib_send_bw and ib_send_lat have it");
  if (t.type == IBV_QPT_UD && o.size > o.mtu) throw usage_error("--size: a datagram is not longer than --mtu");
  if (t.latency && t.queue_pairs > 1) throw usage_error("--qps: a test of latency has one queue pair");
  if (t.latency && t.both_directions) throw usage_error("--bidirectional: a test of bandwidth has it");
  if (t.all_sizes && (o.size != 0 || t.verb == serve::perftest_verb::atomic))
    throw usage_error("--all: takes no --size, and an atomic has 8 bytes");
  if (o.test_seconds != 0 && (o.iterations != 0 || t.all_sizes))
    throw usage_error("--seconds: takes neither --iterations nor --all");
  if (o.rdma_cm && t.type != IBV_QPT_RC) throw usage_error("--rdma-cm: only with --connection RC");
  if (t.reads != 0 && t.verb != serve::perftest_verb::read && t.verb != serve::perftest_verb::atomic)
    throw usage_error("--outs: " + o.app + " has neither READs nor atomics");
  if (t.verb == serve::perftest_verb::atomic && o.size != 0 && o.size != t.message_bytes())
    throw usage_error("--size: an atomic has 8 bytes");
}

void check_connection(const serve_options& o) {
  const bool xserver = o.app == "rdma_xserver" || o.app == "rdma_xclient";
  if (o.connection == "XRC" && !xserver)
    throw usage_error(
        "--connection XRC: only rdma_xserver and rdma_xclient have it, and xsrq_pingpong without this option");
  if (o.connection != "RC" && xserver && o.connection != "XRC")
    throw usage_error("--connection " + o.connection + ": " + o.app + " has RC and XRC");
}

/// What a message has room for beside the address in front of it.
void check_udpong(const serve_options& o) {
  const auto to = wire::parse_gid(o.client);
  const bool v4 = o.client.empty() || (to && wire::ipv4_of(*to));
  const std::uint32_t most = v4 ? serve::rsocket_datagrams::most_over_ipv4 : serve::rsocket_datagrams::most_over_ipv6;
  if (o.size != 0 && (o.size < 16 || o.size > most))
    throw usage_error(fmt::format("--size: udpong has 16 to {} bytes over IPv{}", most, v4 ? 4 : 6));
}

/// Of one client, as far as these options say.
void check_memory(const serve_options& o) {
  std::uint64_t bytes = 0;
  if (serve::find_perftest(o.app)) {
    const serve::perftest_options t = perftest_from(o, 0);
    bytes = std::uint64_t{2} * t.message_bytes() * t.queue_pairs;
  } else if (o.app == "ucmatose") {
    bytes = std::uint64_t{2} * o.size * std::max(o.queue_pairs, 1u);
  }
  if (bytes > serve::most_client_bytes)
    throw usage_error(fmt::format("--size, --all and --qps: {} MiB of memory for a client are asked for, of {} at most",
                                  bytes >> 20, serve::most_client_bytes >> 20));
}

}  // namespace

std::uint64_t draw_mac(const serve_options& options) {
  constexpr std::uint64_t locally_administered = std::uint64_t{0x02} << 40, drawn = (std::uint64_t{1} << 40) - 1;
  constexpr std::uint64_t adapters = 0xff;  // whose addresses follow each other, two each
  std::random_device machine;
  std::mt19937_64 of_seed(options.common.seed);
  const std::uint64_t number = options.common.seed_given ? of_seed() : std::uint64_t{machine()} << 32 | machine();
  return locally_administered | (number & drawn & ~adapters);
}

serve_options of_adapter(const serve_options& options, unsigned index) {
  serve_options o = options;
  if (options.topology.empty()) o.link = options.links.at(options.bonded ? 2 * index : index);
  if (options.bonded) o.second_link = options.links.at(2 * index + 1);
  o.mac = index < options.macs.size() ? options.macs[index] : "";
  o.script = index < options.scripts.size() ? options.scripts[index] : "";
  o.addresses.clear();
  for (const std::string& text : options.addresses) {
    const std::size_t at = text.find('@');
    unsigned long number = 1;
    if (at != std::string::npos) {
      const std::string digits = text.substr(at + 1);
      const bool good =
          !digits.empty() && digits.size() < 4 && digits.find_first_not_of("0123456789") == std::string::npos;
      number = good ? std::stoul(digits) : 0;
      if (number < 1 || number > adapters(options))
        throw usage_error("--ip " + text + ": expected an adapter from 1 to " + std::to_string(adapters(options)) +
                          " behind the @");
    }
    if (number == index + 1) o.addresses.push_back(text.substr(0, at));
  }
  // Exchanges of addresses have a port of this machine each.
  if (index != 0 && (!meets_over_cm(o) || is_qperf(o))) {
    o.port = listening_port(options) + index;
    if (o.port > 65535)
      throw usage_error("--port: adapter " + std::to_string(index + 1) + " would need one above 65535");
  }
  return o;
}

void check(const serve_options& o) {
  if (o.bonded && !o.topology.empty())
    throw usage_error("--bond: bonds are for adapters at links, not at --topology's");
  if (o.bonded && o.links.size() % 2 != 0)
    throw usage_error(
        fmt::format("--bond: expected --link twice for each adapter, for ports 1 and 2; there are {}", o.links.size()));
  if (o.macs.size() > adapters(o))
    throw usage_error(o.topology.empty() ? "--mac: more of them than --link" : "--mac: more of them than adapters");
  check_writable(o.common, o.common.json_file);
  check_writable(o.common, o.common.pcap_file);
  if (is_script(o) && (o.server || !o.client.empty()))
    throw usage_error("--app script: takes neither --server nor --client, its client does what it likes");
  if (is_script(o) != !o.scripts.empty() || (is_script(o) && o.scripts.size() != adapters(o)))
    throw usage_error(std::string("--app script: expected --script once for each ") +
                      (o.topology.empty() ? "--link" : "adapter") + ", and --script with it only");
  if (std::count(o.scripts.begin(), o.scripts.end(), "-") > 1)
    throw usage_error("--script -: there is one standard input");
  if (!o.app.empty() && !is_script(o) && o.server == !o.client.empty())
    throw usage_error("--app " + o.app + ": expected either --server or --client HOST");
  if (o.app.empty() && (o.server || !o.client.empty())) throw usage_error("--server and --client need an --app");
  if (o.app == "mckey") {
    const auto group = wire::parse_gid(o.server ? o.group : o.client);
    if (!group || !host_driver::is_multicast(*group))
      throw usage_error("--app mckey: expected --server --group ADDRESS or --client ADDRESS, a multicast address");
  } else if (meets_over_cm(o) && !o.client.empty() && !wire::parse_gid(o.client)) {
    throw usage_error("--client " + o.client + ": expected an IP address, as --app " + o.app +
                      " meets its server over RoCE");
  }
  if (!o.exchange.empty() && !is_qperf(o) && (!o.server || meets_over_cm(o)))
    throw usage_error("--exchange: only a --server of pingpongs or perftest listens there");
  if (!o.qperf_test.empty() && !is_qperf(o)) throw usage_error("--test is qperf's");
  check_memory(o);
  check_connection(o);
  if (serve::find_perftest(o.app))
    check_perftest(o);
  else if (is_qperf(o))
    check_qperf(o);
  else if ((o.all_sizes && o.app != "rstream") || o.rdma_cm || o.talk_over_cm || o.test_seconds != 0 || o.reads != 0)
    throw usage_error("--rdma-cm, --talk-rdma-cm, --seconds and --outs are of perftest's tools, --all of rstream too");
  if (o.app == "udpong") check_udpong(o);
  if (o.app == "rstream" && o.all_sizes && (o.size != 0 || o.iterations != 0))
    throw usage_error("--all: rstream has its own sizes and numbers then, without --size and --iterations");
  if (o.app == "rping" && (o.size > 65535 || (o.size != 0 && o.size < 27)))
    throw usage_error("--size: rping has 27 to 65535 bytes");
  if ((o.app == "udaddy" || o.app == "mckey") && o.size > 4096)
    throw usage_error("--size: a datagram has up to 4096 bytes");
  if (o.app == "srq_pingpong" && o.receive_depth <= (o.queue_pairs != 0 ? o.queue_pairs : 16))
    throw usage_error("--rx-depth: must be more than the queue pairs of --qps");
  if (o.app == "ud_pingpong" && o.size > 4096) throw usage_error("--size: a datagram has up to 4096 bytes");
}

}  // namespace rnic::program
