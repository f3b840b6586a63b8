// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/network_trace.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "host_driver/hosts/connection.h"
#include "testbenches/bench/trace/message_note.h"

namespace rnic::bench {

// What the simulation tells the thread that writes: a gauge's change, or a message, whose marks follow.

struct network_trace::gauge_record {
  record_kind what = record_kind::gauge;
  std::uint32_t number = 0;
  std::uint64_t value = 0;
  sim::time_ps at = 0;
};

struct network_trace::message_record {
  record_kind what = record_kind::message;
  std::uint8_t status = 0;
  bool polled = false;
  std::uint32_t marks[3] = {0, 0, 0};  ///< of the three ways
  sim::request_key key;
  std::uint64_t number = 0;
  std::uint64_t note = 0;              ///< message_note
  sim::time_ps starts[3] = {0, 0, 0};  ///< of the ways
  sim::time_ps nothing_before = 0;     ///< posts of messages that are still to come, for Konata's order
};

network_trace::network_trace(const watched_system& system, const trace_config& config)
    : system_(system), config_(config) {
  if (!config.file.empty()) writer_ = std::make_unique<trace_writer>(config.file, config.title);
  if (!config.konata.empty()) konata_ = std::make_unique<konata_writer>(config.konata, system.clock_khz);
  if (writer_) add_rows();
}

void network_trace::add_rows() {
  for (const watched_system::host& h : system_.hosts) processes_[h.name] = writer_->add_process(h.name);
  for (const std::string& s : system_.switches) processes_[s] = writer_->add_process(s);
  cables_ = writer_->add_process("cables");
  watch_gauges();
}

void network_trace::add_flow(std::uint32_t, const std::string& name, unsigned host) {
  const auto row = writer_ ? writer_->add_block(process_of(system_.hosts[host].name), "messages of " + name) : 0;
  flows_.push_back({name, row, host, {}});
}

void network_trace::watch_gauges() {
  const auto& all = system_.statistics->gauges();
  for (const auto& [name, gauge] : all) {
    const std::size_t dot = name.find('.');
    gauges_.push_back({writer_->add_gauge(process_of(name.substr(0, dot)), name.substr(dot + 1)), 0, false});
  }
  under_way_ = gauges_.size();
  for (const watched_system::host& h : system_.hosts)
    gauges_.push_back({writer_->add_gauge(process_of(h.name), "messages under way"), 0, false});
  for (std::size_t i = 0; i < all.size(); ++i) all[i].second->watch(*this, i);
}

trace_writer::process network_trace::process_of(const std::string& name) {
  const auto at = processes_.find(name);
  return at != processes_.end() ? at->second : cables_;
}

void network_trace::begin(sim::time_ps now) {
  from_ = now + config_.from;
  until_ = config_.until > ~sim::time_ps{0} - now ? ~sim::time_ps{0} : now + config_.until;
  if (writer_) writer_->set_origin(now);
  if (konata_) konata_->set_origin(now);
  records_ = std::make_unique<record_queue>([this](const record_queue::batch& b) { read(b); });
}

trace_counts network_trace::finish() {
  if (records_) records_->finish();
  for (gauge_state& g : gauges_)
    if (!g.told && g.value != 0) writer_->counter(g.written, from_, g.value);
  if (writer_) {
    counts_.events = writer_->events();
    writer_->close();
  }
  if (konata_) konata_->close();
  return counts_;
}

// ---------------------------------------------------------------- gauges

void network_trace::changed(std::size_t gauge, std::uint64_t value, sim::time_ps at) {
  if (!records_) {
    gauges_[gauge].value = value;
    return;
  }
  if (at >= until_) return;
  const gauge_record r{record_kind::gauge, static_cast<std::uint32_t>(gauge), value, at};
  records_->add(&r, 1);
  records_->end_record();
}

void network_trace::under_way(unsigned host, std::uint64_t number, sim::time_ps now) {
  if (writer_) changed(under_way_ + host, number, now);
}

/// One that has not changed since the window began is told of with its first change.
void network_trace::write_counter(std::size_t gauge, std::uint64_t value, sim::time_ps at) {
  gauge_state& g = gauges_[gauge];
  if (in_window(at)) {
    if (!g.told && g.value != 0) writer_->counter(g.written, from_, g.value);
    g.told = true;
    writer_->counter(g.written, at, value);
  }
  g.value = value;
}

// ---------------------------------------------------------------- to the thread that writes

void network_trace::take(const sim::followed_request& r, sim::time_ps nothing_before) {
  if (!records_) return;
  message_record out;
  out.status = r.status;
  out.polled = r.polled;
  out.key = r.key;
  out.number = r.number;
  out.note = r.what;
  out.nothing_before = nothing_before;
  const sim::followed_request::way* const ways[] = {&r.path, &r.beside, &r.beside_answer};
  for (unsigned i = 0; i < 3; ++i) {
    out.marks[i] = static_cast<std::uint32_t>(ways[i]->marks.size());
    out.starts[i] = ways[i]->start;
  }
  records_->add(&out, 1);
  for (const auto* w : ways) records_->add(w->marks.data(), w->marks.size());
  records_->end_record();
}

void network_trace::read(const record_queue::batch& b) {
  for (std::size_t at = 0; at != b.size();) {
    if (static_cast<record_kind>(b[at]) == record_kind::message) {
      at += read_message(b.data() + at);
      continue;
    }
    gauge_record r;
    std::memcpy(&r, b.data() + at, sizeof r);
    at += sizeof r;
    write_counter(r.number, r.value, r.at);
  }
}

/// Returns its bytes.
std::size_t network_trace::read_message(const char* from) {
  message_record r;
  std::memcpy(&r, from, sizeof r);
  std::size_t at = sizeof r;
  read_.key = r.key;
  read_.number = r.number;
  read_.what = r.note;
  read_.polled = r.polled;
  read_.status = r.status;
  sim::followed_request::way* const ways[] = {&read_.path, &read_.beside, &read_.beside_answer};
  for (unsigned i = 0; i < 3; ++i) {
    ways[i]->start = r.starts[i];
    ways[i]->marks.resize(r.marks[i]);
    const std::size_t bytes = r.marks[i] * sizeof(sim::span::mark);
    if (bytes != 0) std::memcpy(ways[i]->marks.data(), from + at, bytes);
    at += bytes;
  }
  ++counts_.messages;
  if (!r.polled) ++counts_.unfinished;
  if (writer_) write_events(read_);
  if (konata_) write_konata(read_, r.nothing_before);
  return at;
}

// ---------------------------------------------------------------- what is written

const network_trace::known_block& network_trace::block_of(const char* name) {
  known_block& b = blocks_[name];
  if (b.name != nullptr) return b;
  b.name = name;
  const char* const dot = std::strchr(name, '.');
  b.of = process_of(dot != nullptr ? std::string(name, dot) : name);
  b.is_cable = b.of == cables_;
  const bool is_switch = dot == nullptr && !b.is_cable;
  b.row = writer_->add_block(b.of, is_switch ? "forwarding" : dot != nullptr ? dot + 1 : name);
  return b;
}

const network_trace::known_stage& network_trace::stage_of(const sim::span::mark& m) {
  const auto at = reinterpret_cast<std::uintptr_t>(m.block) / 8 * 31 + reinterpret_cast<std::uintptr_t>(m.stage);
  known_stage& k = stages_[at % known_stages];
  if (k.block == m.block && k.stage == m.stage) return k;
  const known_block& of = block_of(m.block);
  const auto [known, is_new] = kinds_.try_emplace({m.block, m.stage}, 0);
  if (is_new) known->second = writer_->add_kind(of.row, m.stage);
  return k = {m.block, m.stage, known->second, of.is_cable};
}

trace_writer::kind network_trace::kind_of(flow_at_host& f, const char* verb) {
  const auto [known, is_new] = f.verbs.try_emplace(verb, 0);
  if (is_new) known->second = writer_->add_kind(f.row, verb);
  return known->second;
}

void network_trace::write_way(const sim::followed_request::way& w, std::string_view of_each) {
  std::array<char, 96> details;
  sim::time_ps begin = w.start;
  trace_writer::place last;  // that an arrow may lead from
  for (const sim::span::mark& m : w.marks) {
    const known_stage& stage = stage_of(m);
    char* end = details.data() + of_each.copy(details.data(), of_each.size());
    if (m.waited != sim::wait::none) {
      constexpr std::string_view waits = ",\"waits\":\"";
      end += waits.copy(end, waits.size());
      const std::string_view why = sim::to_string(m.waited);
      end += why.copy(end, why.size());
      *end++ = '"';
    }
    const trace_writer::place at = writer_->slice(stage.kind, std::min(begin, m.at), m.at,
                                                  {details.data(), static_cast<std::size_t>(end - details.data())});
    begin = std::max(begin, m.at);
    if (at.row == 0 || stage.is_cable) continue;
    if (last.row != 0 && last.of != at.of) writer_->arrow(last, at);
    last = at;
  }
}

void network_trace::write_message(const sim::followed_request& r, std::string_view message) {
  const message_note note = message_note::unpacked(r.what);
  flow_at_host& f = flows_[note.flow];
  const char* const verb = note.verb_name();
  const sim::time_ps end = r.path.marks.empty() ? r.path.start : r.path.marks.back().at;
  std::string details(message);
  details += ",\"verb\":\"" + std::string(verb) + "\",\"bytes\":" + std::to_string(note.bytes) +
             ",\"qpn\":" + std::to_string(r.key.qpn) + ",\"index\":" + std::to_string(r.key.index) +
             ",\"latency_ps\":" + std::to_string(end - r.path.start);
  if (!r.polled) details += ",\"unfinished\":true";
  if (r.status != 0)
    details += ",\"status\":\"" + std::string(hosts::to_string(static_cast<ibv_wc_status>(r.status))) + "\"";
  writer_->slice(kind_of(f, verb), r.path.start, end, details);
}

void network_trace::write_konata(const sim::followed_request& r, sim::time_ps nothing_before) {
  const message_note note = message_note::unpacked(r.what);
  const flow_at_host& f = flows_[note.flow];
  konata_->add(r, r.number, f.host,
               f.name + " " + note.verb_name() + " " + std::to_string(note.bytes) + " qpn " +
                   std::to_string(r.key.qpn) + " index " + std::to_string(r.key.index));
  konata_->write_before(nothing_before);
}

void network_trace::write_events(const sim::followed_request& r) {
  std::array<char, 32> text;
  std::memcpy(text.data(), "\"m\":", 4);
  const auto end = std::to_chars(text.data() + 4, text.data() + text.size(), r.number).ptr;
  const std::string_view message(text.data(), static_cast<std::size_t>(end - text.data()));
  write_message(r, message);
  write_way(r.path, message);
  if (r.beside.marks.empty() && r.beside_answer.marks.empty()) return;
  const std::string beside = std::string(message) + ",\"beside\":true";
  write_way(r.beside, beside);
  write_way(r.beside_answer, beside);
}

}  // namespace rnic::bench
