// SPDX-License-Identifier: Apache-2.0
// `rnic serve`: one adapter on a real network.
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <systemc>

#include "model/wire/ethernet.h"
#include "testbenches/rnic/experiment.h"
#include "testbenches/rnic/results.h"
#include "testbenches/rnic/serve_applications.h"
#include "testbenches/serve/real_time.h"
#include "testbenches/serve/served_host.h"

namespace rnic::program {

namespace {

/// Of a process that runs application code and the resolver of the C library.
constexpr int stack_bytes = 1 << 20;

class serve_run {
 public:
  explicit serve_run(const serve_options& options);
  int run();

 private:
  serve::host_config host_config();
  int gid_index();
  serve::application_result run_application();
  void run_applications();
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
  std::vector<serve::application_result> runs_;
  serve::cm_service* service_ = nullptr;  // lives in the program's process
  std::optional<host_driver::cm::connection_manager_counters> managed_;
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

int serve_run::gid_index() {
  int index = options_.gid_index;
  if (index < 0) index = host_->gid_index(options_.roce == "v1" ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2);
  if (index < 0 || !host_->device().port(1).gids[static_cast<std::size_t>(index)].valid)
    throw usage_error("--gid-index " + std::to_string(index) + ": there is no such GID");
  return index;
}

void serve_run::listen() {
  try {
    exchange_.listen(listening_port(options_));
  } catch (const std::runtime_error& e) {
    throw usage_error(e.what());
  }
}

void serve_run::program() {
  host_->start();
  if (!options_.app.empty()) gid_index();  // wrong options are told before anything begins
  if (options_.server && !of_connection_manager(options_.app)) listen();
  clock_.start_clock();
  fmt::print("serving {} at {}\n", wire::to_string(host_->mac()), options_.link);
  std::fflush(stdout);
  if (options_.app.empty()) return;
  run_applications();
  if (options_.duration_s == 0) clock_.stop();
}

serve::application_result serve_run::run_application() {
  const int gid = gid_index();
  if (service_ != nullptr) return run_cm_application(*host_, *service_, cm_application_from(options_, gid));
  if (serve::find_perftest(options_.app)) return run_perftest(*host_, exchange_, perftest_from(options_, gid));
  const serve::pingpong_options o = pingpong_from(options_, gid);
  if (options_.app == "xsrq_pingpong") return run_xsrq_pingpong(*host_, exchange_, o);
  return options_.app == "srq_pingpong" ? run_srq_pingpong(*host_, exchange_, o) : run_pingpong(*host_, exchange_, o);
}

void serve_run::run_applications() {
  std::unique_ptr<serve::cm_service> service;
  if (of_connection_manager(options_.app)) service = std::make_unique<serve::cm_service>(*host_);
  service_ = service.get();
  for (unsigned n = 0; options_.repeat == 0 || n < options_.repeat; ++n) {
    const serve::application_result r = run_application();
    if (r.ok)
      fmt::print("{}: {} messages sent, {} received in {} us, {} us each\n", options_.app, r.sent, r.received,
                 microseconds(r.took_ps), microseconds(r.took_ps / std::max<std::uint64_t>(r.received, 1)));
    else
      fmt::print("{} failed: {}\n", options_.app, r.error);
    std::fflush(stdout);
    runs_.push_back(r);
  }
  if (service) managed_ = service->manager().count();
  service_ = nullptr;
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
  for (const serve::application_result& r : runs_) ok = ok && r.ok;
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

nlohmann::json managed_json(const host_driver::cm::connection_manager_counters& c) {
  return {{"received", c.received},
          {"sent", c.sent},
          {"malformed", c.malformed},
          {"unknown_id", c.unknown_id},
          {"wrong_state", c.wrong_state},
          {"duplicates", c.duplicates},
          {"stale", c.stale},
          {"no_service", c.no_service},
          {"no_room", c.no_room},
          {"retries", c.retries},
          {"timeouts", c.timeouts}};
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
                    {"lagging_us", clock_.behind().lagging_us},
                    {"lost_us", clock_.lost_us()}};
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
  for (const serve::application_result& r : runs_) result["runs"].push_back(to_json(options_.app, r));
  if (managed_ || service_ != nullptr)
    result["connection_manager"] = managed_json(managed_ ? *managed_ : service_->manager().count());
  result["statistics"] = nlohmann::json::object();
  for (const auto& [name, value] : statistics_.all())
    if (*value != 0) result["statistics"][name] = *value;
  return result;
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
