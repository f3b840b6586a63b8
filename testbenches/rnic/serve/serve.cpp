// SPDX-License-Identifier: Apache-2.0
// `rnic serve`: adapters on real networks.
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

#include "testbenches/rnic/fabric/network_setup.h"
#include "testbenches/rnic/json_output.h"
#include "testbenches/rnic/measure/experiment.h"
#include "testbenches/rnic/results.h"
#include "testbenches/rnic/serve/serve_links.h"
#include "testbenches/rnic/serve/serve_network.h"
#include "testbenches/rnic/serve/serve_notices.h"
#include "testbenches/rnic/serve/serve_station.h"
#include "testbenches/rnic/trace/run_watch.h"

namespace rnic::program {

namespace {

/// Of a process that runs application code and the resolver of the C library.
constexpr int stack_bytes = 1 << 20;

/// For what is still on its way to the links' peers when everything else is over: a peer that is a process of this
/// machine may not be run for a while. Who has asked for the end does not wait for that.
constexpr std::chrono::milliseconds longest_ending{2000}, longest_ending_asked_for{200};
/// Real time for the answers of peers that are left, and between two looks for them.
constexpr std::chrono::milliseconds leave_within{2000}, look_every{2};

/// Within it one wish to end: `timeout` sends its signal to the program, and once more to its group.
constexpr std::chrono::milliseconds one_wish{100};

class serve_run {
 public:
  /// `file`: nullptr without a topology.
  serve_run(const serve_options& options, const fabric_file* file, const serve_places& places);
  int run();

 private:
  void program();
  void applications();
  void spawn(const char* name, void (serve_run::*what)());
  void on_signal();
  void leave();
  void look_again(void (serve_run::*look)());
  void look_whether_left();
  void finish();
  void look_whether_sent();
  void print_end();
  nlohmann::json results() const;

  void make_network(const fabric_file& file, const serve_places& places, const adapter::environment& env);
  void look_on();
  std::vector<serve::link_port*> links() const;

  const serve_options& options_;
  std::string effective_;
  hosts::network_config network_config_;  // of a topology
  hosts::two_nodes_config system_;
  boost::asio::io_context io_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer end_, look_;
  std::optional<std::chrono::steady_clock::time_point> leave_by_, finish_by_;
  sim::timebase base_;
  sim::span_recorder spans_;
  sim::statistics statistics_;
  payload::frame_pool frames_;
  payload::tlp_pool packets_;
  hosts::system_capture all_ports_;
  serve::real_time clock_;
  serve_notices notices_;
  std::vector<std::unique_ptr<serve_station>> stations_;
  std::unique_ptr<serve_network> network_;         // of a topology
  std::unique_ptr<run_watch> watch_;               // comments in a capture of all ports; nullptr: there is none
  std::size_t begun_ = 0, ready_ = 0, ended_ = 0;  // stations whose applications have, or are
  bool serving_ = false;                           // said so
  sc_core::sc_event made_ready_{sc_core::sc_gen_unique_name("made_ready")},
      served_{sc_core::sc_gen_unique_name("serving")};
  int signal_ = 0;
  std::chrono::steady_clock::time_point signalled_{};
  std::exception_ptr failure_;
};

/// Of a topology what an adapter has of it, besides its node.
hosts::two_nodes_config system_of(const hosts::network_config& network) {
  hosts::two_nodes_config c;
  c.node = network.node;
  c.capture = network.capture;
  c.capture_options = network.capture_options;
  c.timing = network.timing;
  return c;
}

serve_run::serve_run(const serve_options& options, const fabric_file* file, const serve_places& places)
    : options_(options),
      network_config_(file == nullptr ? hosts::network_config{}
                                      : network_from(options.common, *file, options.topology, demand{1, options.size},
                                                     &effective_)),
      system_(file == nullptr ? system_from(options.common, traffic_options{}, demand{1, options.size}, &effective_,
                                            adapters(options) == 1 ? one_adapter : two_sides)
                              : system_of(network_config_)),
      signals_(io_, SIGINT, SIGTERM),
      end_(io_),
      look_(io_),
      base_(system_.timing),
      all_ports_(hosts::system_capture::has_all_ports(system_.capture) ? system_.capture : "", system_.capture_options),
      clock_(base_, io_),
      notices_(options.common.quiet) {
  const adapter::environment env{base_, spans_, statistics_, frames_, packets_};
  if (file != nullptr)
    make_network(*file, places, env);
  else
    for (unsigned i = 0; i < adapters(options); ++i)
      stations_.push_back(
          std::make_unique<serve_station>(of_adapter(options, i), i, system_, all_ports_, env, io_, clock_, notices_));
  look_on();
  clock_.when_lost([this](std::uint64_t us) { notices_.lost_time(us); });
}

void serve_run::make_network(const fabric_file& file, const serve_places& places, const adapter::environment& env) {
  network_ = std::make_unique<serve_network>(network_config_, places, all_ports_, env, io_, clock_, notices_);
  for (unsigned i = 0; i < places.adapters.size(); ++i) {
    hosts::two_nodes_config c = system_;
    c.node = hosts::of_host(network_config_, places.adapters[i]);
    serve_options o = of_adapter(options_, i);
    if (!options_.vlan_given && file.common.vlan != host_driver::no_vlan) o.vlan = file.common.vlan;
    stations_.push_back(std::make_unique<serve_station>(o, i, c, all_ports_, env, io_, clock_, notices_));
    stations_.back()->capture(network_->plug(i, stations_.back()->connector()));
  }
}

/// Frames of a capture of all ports say which message they are of, and where its time has gone.
void serve_run::look_on() {
  if (all_ports_.of_ports() == nullptr) return;
  bench::watched_system w;
  w.base = &base_;
  w.spans = &spans_;
  w.statistics = &statistics_;
  w.capture = all_ports_.of_ports();
  w.clock_khz = system_.node.adapter.clock_khz;
  for (const auto& s : stations_) w.hosts.push_back({s->name(), &s->device(), nullptr});
  if (network_) {
    w.switches = network_->switches();
    network_->follow(spans_);
  }
  watch_ = std::make_unique<run_watch>(w, trace_options{}, "");
  watch_->follow(options_.app.empty() ? "served" : options_.app);
}

/// All of them, of adapters and of the network.
std::vector<serve::link_port*> serve_run::links() const {
  std::vector<serve::link_port*> all;
  for (const auto& s : stations_)
    for (serve::link_port* l : {s->link(), s->second_link()})
      if (l != nullptr) all.push_back(l);
  if (network_)
    for (const auto& l : network_->links()) all.push_back(l.get());
  return all;
}

void serve_run::program() {
  for (const auto& s : stations_) s->start();
  const std::size_t programs = options_.app.empty() ? 0 : stations_.size();
  for (std::size_t i = 0; i < programs; ++i) spawn("applications", &serve_run::applications);
  while (ready_ < programs) sc_core::wait(made_ready_);
  clock_.start_clock();
  for (const auto& s : stations_) s->print_start();
  if (network_) network_->print_start();
  std::fflush(stdout);
  notices_.begin();
  if (watch_) watch_->begin(base_.now_ps());
  serving_ = true;
  served_.notify(sc_core::SC_ZERO_TIME);
}

void serve_run::applications() {
  stations_[begun_++]->run_applications([this] {
    ++ready_;
    made_ready_.notify(sc_core::SC_ZERO_TIME);
    while (!serving_) sc_core::wait(served_);
  });
  if (++ended_ != stations_.size() || (options_.duration_s != 0 && !leave_by_)) return;
  if (std::any_of(stations_.begin(), stations_.end(), [](const auto& s) { return s->has_agent(); })) return leave();
  finish();
}

void serve_run::spawn(const char* name, void (serve_run::*what)()) {
  sc_core::sc_spawn_options stack;
  stack.set_stack_size(stack_bytes);
  sc_core::sc_spawn(
      [this, what] {
        try {
          (this->*what)();
        } catch (...) {
          failure_ = std::current_exception();
          leave();
        }
      },
      sc_core::sc_gen_unique_name(name), &stack);
}

void serve_run::on_signal() {
  signals_.async_wait([this](const boost::system::error_code& error, int number) {
    if (error) return;
    const auto now = std::chrono::steady_clock::now();
    if (signal_ == number && now < signalled_ + one_wish) return on_signal();
    signal_ = number;
    signalled_ = now;
    if (leave_by_) return clock_.stop();  // the second one: at once
    clock_.catch_up();
    leave();
    on_signal();
  });
}

/// The peers are told, and have some time to answer.
void serve_run::leave() {
  if (leave_by_ || finish_by_) return;
  leave_by_ = std::chrono::steady_clock::now() + leave_within;
  for (const auto& s : stations_) s->leave();
  look_whether_left();
}

void serve_run::look_again(void (serve_run::*look)()) {
  look_.expires_after(look_every);
  look_.async_wait([this, look](const boost::system::error_code& error) {
    if (error) return;
    clock_.catch_up();
    (this->*look)();
  });
}

void serve_run::look_whether_left() {
  const bool left = std::all_of(stations_.begin(), stations_.end(), [](const auto& s) { return s->left(); });
  if (left || std::chrono::steady_clock::now() >= *leave_by_) return finish();
  look_again(&serve_run::look_whether_left);
}

/// Frames that the adapters have sent reach the peers, as those of a machine that goes on when a program ends: the last
/// one is often an answer for which a peer would wait long.
void serve_run::finish() {
  if (finish_by_) return;
  const bool asked_for = signal_ != 0 || options_.duration_s != 0;
  finish_by_ = std::chrono::steady_clock::now() + (asked_for ? longest_ending_asked_for : longest_ending);
  for (const auto& s : stations_) s->depart();
  for (serve::link_port* l : links()) l->stop_reading();
  look_whether_sent();
}

void serve_run::look_whether_sent() {
  const std::vector<serve::link_port*> all = links();
  const bool departed =
      std::all_of(stations_.begin(), stations_.end(), [](const auto& s) { return s->has_departed(); });
  const bool sent =
      departed && frames_.in_use() == 0 &&
      std::all_of(all.begin(), all.end(), [](const serve::link_port* l) { return l->bridge().waiting_bytes == 0; });
  if (sent || std::chrono::steady_clock::now() >= *finish_by_) return clock_.stop();
  look_again(&serve_run::look_whether_sent);
}

int serve_run::run() {
  on_signal();
  if (options_.duration_s != 0) {
    end_.expires_after(std::chrono::seconds(options_.duration_s));
    end_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      clock_.catch_up();
      leave();
    });
  }
  spawn("program", &serve_run::program);
  clock_.run();
  for (const auto& s : stations_) s->close_capture();
  all_ports_.close();
  print_end();
  if (!options_.common.json_file.empty()) write_json(options_.common.json_file, results());
  if (failure_) std::rethrow_exception(failure_);
  return std::all_of(stations_.begin(), stations_.end(), [](const auto& s) { return s->ok(); }) ? 0 : 1;
}

void serve_run::print_end() {
  notices_.end();
  for (const auto& s : stations_) s->print_link();
  if (network_) network_->print_end();
  fmt::print("simulated time was up to {} us behind, for {} us", clock_.behind().max_us, clock_.behind().lagging_us);
  if (clock_.lost_us() != 0) fmt::print(", and {} us are lost", clock_.lost_us());
  fmt::print("\n");
  std::fflush(stdout);
}

nlohmann::json serve_run::results() const {
  nlohmann::json result = run_header("serve", options_.common);
  result["parameters"] = effective_;
  result.update(stations_.front()->results());
  if (stations_.size() > 1)
    for (const auto& s : stations_) result["adapters"].push_back(s->results());
  if (network_) result["fabric"] = network_->results();
  result["signal"] = signal_;
  result["time"] = {{"real_us", clock_.elapsed_us()},
                    {"simulated_us", clock_.simulated_us()},
                    {"max_behind_us", clock_.behind().max_us},
                    {"lagging_us", clock_.behind().lagging_us},
                    {"lost_us", clock_.lost_us()}};
  result["statistics"] = nlohmann::json::object();
  for (const auto& [name, value] : statistics_.all())
    if (*value != 0) result["statistics"][name] = *value;
  return result;
}

}  // namespace

int run_serve(const serve_options& options) {
  serve_options own = options;
  std::optional<fabric_file> file;
  serve_places places;
  if (!options.topology.empty()) {
    file = load_fabric_file(options.topology, flows_in_file::may_be_missing);
    file->flows.clear();  // peers and applications make the traffic
    places = places_from(own, file->shape);
  }
  check(own);
  own.default_mac = draw_mac(options);
  std::unique_ptr<serve_run> serving;
  try {
    serving = std::make_unique<serve_run>(own, file ? &*file : nullptr, places);
  } catch (const std::runtime_error& e) {
    throw usage_error(e.what());
  }
  return serving->run();
}

}  // namespace rnic::program
