// SPDX-License-Identifier: Apache-2.0
#include "testbenches/cosim/icrc/lockstep.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include "model/icrc/icrc_model.h"

namespace rnic::cosim {
namespace {

constexpr std::size_t events_shown = 16;
constexpr std::uint64_t window_before = 32;

struct event {
  std::uint64_t cycle = 0;
  stimulus in;
  icrc::icrc_outputs model, rtl;
};

icrc::icrc_outputs clock(icrc::icrc_engine_if& engine, const stimulus& s) {
  if (!s.reset) return engine.step(s.in, s.result_ready);
  engine.reset();
  return {};
}

std::optional<difference> compare(const event& e) {
  difference d;
  d.cycle = e.cycle;
  const auto differs = [&d](const char* port, std::uint64_t model, std::uint64_t rtl) {
    d.port = port;
    d.model = model;
    d.rtl = rtl;
    return model != rtl;
  };
  if (differs("in_ready", e.model.in_ready, e.rtl.in_ready)) return d;
  if (differs("result_valid", e.model.result_valid, e.rtl.result_valid)) return d;
  if (e.model.result_valid && differs("result_crc", e.model.crc, e.rtl.crc)) return d;
  return std::nullopt;
}

void print(std::ostream& to, const char* who, const icrc::icrc_outputs& o) {
  to << "  " << who << " in_ready " << o.in_ready << " result_valid " << o.result_valid << " crc " << std::hex << o.crc
     << std::dec;
}

std::string report(const difference& d, const std::vector<event>& log) {
  std::ostringstream text;
  text << "cycle " << d.cycle << ", port " << d.port << ": model " << std::hex << d.model << ", rtl " << d.rtl
       << std::dec << "\n";
  for (std::size_t i = log.size() > events_shown ? log.size() - events_shown : 0; i < log.size(); ++i) {
    const event& e = log[i];
    text << "  cycle " << e.cycle << ": ";
    if (e.in.reset) text << "reset ";
    text << "in_valid " << e.in.in.valid << " first " << e.in.in.first << " last " << e.in.in.last << " keep "
         << unsigned{e.in.in.keep} << " encap " << static_cast<unsigned>(e.in.in.encap) << " result_ready "
         << e.in.result_ready;
    print(text, "| model", e.model);
    print(text, "| rtl", e.rtl);
    text << "\n";
  }
  return text.str();
}

/// The same inputs once more from reset, this time with a waveform of the last cycles.
std::string write_waveform(const std::vector<event>& log, const rtl_factory& make, const std::string& name) {
  std::string path = "icrc_" + name + ".fst";
  const auto engine = make();
  const std::uint64_t from = log.size() > window_before ? log.size() - window_before : 0;
  for (const event& e : log) {
    if (e.cycle == from) engine->start_trace(path);
    clock(*engine, e.in);
  }
  engine->stop_trace();
  return path;
}

}  // namespace

outcome run_lockstep(const traffic& t, const rtl_factory& make, const std::string& name, std::uint64_t max_cycles) {
  icrc::icrc_model model;
  const auto rtl = make();
  driver drive(t);
  std::vector<event> log;
  outcome result;
  while (!drive.done() && result.cycles < max_cycles) {
    event e;
    e.cycle = result.cycles++;
    e.in = drive.next();
    e.model = clock(model, e.in);
    e.rtl = clock(*rtl, e.in);
    log.push_back(e);
    auto d = compare(e);
    const auto wrong = drive.finish(e.in, e.model);
    if (!d && wrong) d = difference{e.cycle, "oracle", e.model.crc, e.rtl.crc, {}, {}};
    if (!d) continue;
    d->report = report(*d, log) + wrong.value_or("");
    d->waveform = write_waveform(log, make, name);
    result.first_difference = std::move(d);
    return result;
  }
  result.finished = drive.done();
  return result;
}

}  // namespace rnic::cosim
