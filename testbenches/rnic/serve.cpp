// SPDX-License-Identifier: Apache-2.0
// `rnic serve`: one adapter on a real network.
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <systemc>

#include "model/wire/ethernet.h"
#include "testbenches/rnic/experiment.h"
#include "testbenches/rnic/results.h"
#include "testbenches/serve/pingpong.h"
#include "testbenches/serve/real_time.h"
#include "testbenches/serve/served_host.h"

namespace rnic::program {

namespace {

/// Of a process that runs application code and the resolver of the C library.
constexpr int stack_bytes = 1 << 20;

ibv_qp_type service_of(const std::string& app) {
  if (app == "uc_pingpong") return IBV_QPT_UC;
  return app == "ud_pingpong" ? IBV_QPT_UD : IBV_QPT_RC;
}

class serve_run {
 public:
  explicit serve_run(const serve_options& options);
  int run();

 private:
  serve::host_config host_config();
  serve::pingpong_options application();
  void listen();
  void program();
  void on_signal();
  void print_end() const;
  nlohmann::json results() const;
  nlohmann::json link_json() const;

  const serve_options& options_;
  std::string effective_;
  bench::two_nodes_config system_;
  boost::asio::io_context io_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer end_;
  sim::timebase base_;
  sim::span_recorder spans_;
  sim::statistics statistics_;
  tlm::frame_pool frames_;
  tlm::tlp_pool packets_;
  serve::real_time clock_;
  serve::address_exchange exchange_;
  std::unique_ptr<serve::served_host> host_;
  std::vector<serve::pingpong_result> runs_;
  int signal_ = 0;
  std::exception_ptr failure_;
};

serve_run::serve_run(const serve_options& options)
    : options_(options),
      system_(system_from(options.common, traffic_options{}, demand{1, options.size}, &effective_)),
      signals_(io_, SIGINT, SIGTERM),
      end_(io_),
      base_(system_.timing),
      clock_(base_, io_),
      exchange_(io_, base_, clock_) {
  const adapter::environment env{base_, spans_, statistics_, frames_, packets_};
  host_ = std::make_unique<serve::served_host>(host_config(), env, io_, clock_);
}

serve::host_config serve_run::host_config() {
  serve::host_config c;
  c.node = system_.node;
  try {
    c.link = serve::parse_link(options_.link);
  } catch (const std::invalid_argument& e) {
    throw usage_error(e.what());
  }
  for (const std::string& text : options_.addresses) {
    const auto address = wire::parse_gid(text);
    if (!address || wire::is_multicast(*address)) throw usage_error("--ip " + text + ": not an address of a host");
    c.addresses.push_back(*address);
  }
  if (!options_.mac.empty()) {
    c.mac = wire::parse_mac(options_.mac);
    if (!c.mac || wire::is_multicast(*c.mac) || wire::to_u64(*c.mac) == 0)
      throw usage_error("--mac " + options_.mac + ": not a MAC address of a port");
  }
  if (options_.vlan != 0) c.vlan = static_cast<std::uint16_t>(options_.vlan);
  c.capture = system_.capture;
  c.overwrite = system_.overwrite;
  return c;
}

serve::pingpong_options serve_run::application() {
  serve::pingpong_options o;
  o.type = service_of(options_.app);
  o.server = options_.client;
  o.port = static_cast<std::uint16_t>(options_.port);
  o.size = options_.size != 0 ? options_.size : o.type == IBV_QPT_UD ? 1024u : 4096u;
  o.mtu = options_.mtu;
  o.iterations = options_.iterations;
  o.receive_depth = options_.receive_depth;
  o.queue_pairs = options_.queue_pairs;
  o.service_level = options_.priority;
  o.seed = options_.common.seed;
  o.gid_index = options_.gid_index;
  if (o.gid_index < 0)
    o.gid_index = host_->gid_index(options_.roce == "v1" ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2);
  if (o.gid_index < 0 || !host_->device().port(1).gids[static_cast<std::size_t>(o.gid_index)].valid)
    throw usage_error("--gid-index " + std::to_string(o.gid_index) + ": there is no such GID");
  return o;
}

void serve_run::listen() {
  try {
    exchange_.listen(static_cast<std::uint16_t>(options_.port));
  } catch (const std::runtime_error& e) {
    throw usage_error(e.what());
  }
}

void serve_run::program() {
  host_->start();
  const serve::pingpong_options app = application();
  if (options_.server) listen();
  clock_.start_clock();
  fmt::print("serving {} at {}\n", wire::to_string(host_->mac()), options_.link);
  std::fflush(stdout);
  if (options_.app.empty()) return;
  for (unsigned n = 0; options_.repeat == 0 || n < options_.repeat; ++n) {
    const serve::pingpong_result r = options_.app == "srq_pingpong" ? run_srq_pingpong(*host_, exchange_, app)
                                                                   : run_pingpong(*host_, exchange_, app);
    if (r.ok)
      fmt::print("{} of {} bytes: {} messages each way in {} us, {} us each\n", options_.app, app.size, r.received,
                 microseconds(r.took_ps), microseconds(r.took_ps / app.iterations));
    else
      fmt::print("{} failed: {}\n", options_.app, r.error);
    std::fflush(stdout);
    runs_.push_back(r);
  }
  if (options_.duration_s == 0) clock_.stop();
}

void serve_run::on_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) return;
    signal_ = number;
    clock_.stop();
  });
}

int serve_run::run() {
  on_signal();
  if (options_.duration_s != 0) {
    end_.expires_after(std::chrono::seconds(options_.duration_s));
    end_.async_wait([this](const boost::system::error_code& error) {
      if (!error) clock_.stop();
    });
  }
  sc_core::sc_spawn_options stack;
  stack.set_stack_size(stack_bytes);
  sc_core::sc_spawn(
      [this] {
        try {
          program();
        } catch (...) {
          failure_ = std::current_exception();
          clock_.stop();
        }
      },
      "program", &stack);
  clock_.run();
  host_->close_capture();
  print_end();
  if (!options_.common.json_file.empty()) write_text(options_.common.json_file, results().dump(2) + "\n");
  if (failure_) std::rethrow_exception(failure_);
  bool ok = options_.app.empty() || !runs_.empty();
  for (const serve::pingpong_result& r : runs_) ok = ok && r.ok;
  return ok ? 0 : 1;
}

void serve_run::print_end() const {
  const serve::link_counters& c = host_->link().counters();
  fmt::print("{} frames in, {} out, {} dropped at the link; simulated time was up to {} us behind, for {} us\n",
             c.frames_in, c.frames_out, c.drop_runt + c.drop_oversized + c.drop_queue_full + c.drop_no_peer,
             clock_.behind().max_us, clock_.behind().lagging_us);
  std::fflush(stdout);
}

nlohmann::json serve_run::link_json() const {
  const serve::link_counters& c = host_->link().counters();
  return {{"frames_in", c.frames_in},
          {"bytes_in", c.bytes_in},
          {"frames_out", c.frames_out},
          {"bytes_out", c.bytes_out},
          {"connections", c.connections},
          {"disconnections", c.disconnections},
          {"drop",
           {{"runt", c.drop_runt},
            {"oversized", c.drop_oversized},
            {"queue_full", c.drop_queue_full},
            {"no_peer", c.drop_no_peer}}},
          {"bad_length", c.bad_length},
          {"half_frames", c.half_frames},
          {"errors", c.errors}};
}

nlohmann::json serve_run::results() const {
  nlohmann::json result = run_header("serve", options_.common);
  result["parameters"] = effective_;
  result["link"] = link_json();
  result["link"]["at"] = options_.link;
  result["signal"] = signal_;
  result["time"] = {{"real_us", clock_.elapsed_us()},
                    {"simulated_us", clock_.simulated_us()},
                    {"max_behind_us", clock_.behind().max_us},
                    {"lagging_us", clock_.behind().lagging_us}};
  const host_driver::neighbours::counters a = host_->answered();
  result["network"] = {{"arp_requests", a.arp_requests},
                       {"arp_replies", a.arp_replies},
                       {"solicitations", a.solicitations},
                       {"advertisements", a.advertisements},
                       {"echo_requests", a.echo_requests},
                       {"echo6_requests", a.echo6_requests},
                       {"asked", a.asked},
                       {"malformed", a.malformed},
                       {"not_for_us", a.not_for_us},
                       {"unknown", a.unknown},
                       {"table_full", a.table_full}};
  result["runs"] = nlohmann::json::array();
  for (const serve::pingpong_result& r : runs_)
    result["runs"].push_back({{"app", options_.app},
                              {"ok", r.ok},
                              {"error", r.error},
                              {"local", r.local},
                              {"remote", r.remote},
                              {"sent", r.sent},
                              {"received", r.received},
                              {"wrong_bytes", r.wrong_bytes},
                              {"took_us", to_us(r.took_ps)}});
  result["statistics"] = nlohmann::json::object();
  for (const auto& [name, value] : statistics_.all())
    if (*value != 0) result["statistics"][name] = *value;
  return result;
}

void check(const serve_options& o) {
  check_writable(o.common, o.common.json_file);
  check_writable(o.common, o.common.pcap_file);
  if (!o.app.empty() && o.server == !o.client.empty())
    throw usage_error("--app " + o.app + ": expected either --server or --client HOST");
  if (o.app.empty() && (o.server || !o.client.empty())) throw usage_error("--server and --client need an --app");
  if (o.app == "srq_pingpong" && o.receive_depth <= o.queue_pairs)
    throw usage_error("--rx-depth: must be more than the queue pairs of --qps");
  if (o.app == "ud_pingpong" && o.size > 4096) throw usage_error("--size: a datagram has up to 4096 bytes");
}

}  // namespace

int run_serve(const serve_options& options) {
  check(options);
  std::unique_ptr<serve_run> serving;
  try {
    serving = std::make_unique<serve_run>(options);
  } catch (const std::runtime_error& e) {
    throw usage_error(e.what());
  }
  return serving->run();
}

}  // namespace rnic::program
