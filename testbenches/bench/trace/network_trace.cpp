// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/network_trace.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "host_driver/workloads/verb.h"

namespace rnic::bench {

namespace {

/// What is known of a message when it is posted, as followed_requests keeps it.
struct message_note {
  std::uint32_t bytes;
  std::uint16_t flow;
  std::uint8_t verb;  // of verbs(); or no_verb
  std::uint8_t lists = 0;
};
constexpr std::uint8_t no_verb = 0xff;
constexpr std::size_t most_flows = 0xffff;
constexpr std::uint64_t konata_interval = 256;  // messages, after which what is complete is written

std::uint64_t packed(const message_note& n) {
  return std::uint64_t{n.bytes} << 32 | std::uint64_t{n.flow} << 8 | n.verb;
}
message_note unpacked(std::uint64_t what) {
  return {static_cast<std::uint32_t>(what >> 32), static_cast<std::uint16_t>(what >> 8),
          static_cast<std::uint8_t>(what)};
}

std::uint8_t verb_number(const ibv_send_wr& wr) {
  const bool masked = wr.opcode == IBV_WR_DRIVER1;
  const auto& all = workloads::verbs();
  const auto same = [&](const workloads::verb& v) {
    if (!masked) return !v.masked && v.opcode == wr.opcode;
    const auto what = static_cast<const host_driver::driver_wr&>(wr).operation;
    const bool adds = v.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    return v.masked && what == (adds ? host_driver::driver_opcode::masked_fetch_add
                                     : host_driver::driver_opcode::masked_compare_swap);
  };
  const auto at = std::find_if(all.begin(), all.end(), same);
  return at == all.end() ? no_verb : static_cast<std::uint8_t>(at - all.begin());
}

std::uint32_t bytes_of(const ibv_send_wr& wr) {
  std::uint64_t bytes = 0;
  for (int i = 0; i < wr.num_sge; ++i) bytes += wr.sg_list[i].length;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, ~std::uint32_t{0}));
}

std::uint64_t sender_key(unsigned host, std::uint32_t qpn) { return std::uint64_t{host} << 32 | qpn; }

}  // namespace

/// What the simulation tells the thread that writes: a gauge's change, or a message, whose marks follow.
struct network_trace::record {
  enum class kind : std::uint8_t { gauge, message } what = kind::gauge;
  std::uint8_t status = 0;
  bool polled = false;
  std::uint32_t marks[3] = {0, 0, 0};  ///< of the three ways
  sim::request_key key;
  std::uint64_t gauge = 0, value = 0;  ///< value: of a message what followed_requests kept of it
  sim::time_ps at[3] = {0, 0, 0};      ///< of the change; starts of the ways
  sim::time_ps nothing_before = 0;     ///< posts of messages that are still to come, for Konata's order
};

/// What the driver of a host posts and polls.
class network_trace::host_watcher final : public host_driver::span_source_if {
 public:
  host_watcher(network_trace& of, unsigned host, unsigned adapter) : of_(of), host_(host), adapter_(adapter) {}
  std::uint32_t span_for(const ibv_qp& qp, const posted& requests) override {
    return of_.post(host_, adapter_, qp, requests);
  }
  void polled(const ibv_qp& qp, std::uint32_t first, std::uint32_t last, const ibv_wc& wc) override {
    of_.poll(host_, adapter_, qp, first, last, wc);
  }

 private:
  network_trace& of_;
  unsigned host_, adapter_;
};

network_trace::network_trace(hosts::network& system, const trace_config& config)
    : system_(system), config_(config), followed_(config.followed, *this), under_way_of_(system.hosts()) {
  if (!config.file.empty()) writer_ = std::make_unique<trace_writer>(config.file, config.title);
  if (!config.konata.empty())
    konata_ = std::make_unique<konata_writer>(config.konata, system.built_from(0).adapter.clock_khz);
  for (unsigned h = 0; h < system.hosts(); ++h) {
    const std::string name = system.host(h).name();
    processors_.push_back(name + ".processor");
    hosts_.push_back(std::make_unique<host_watcher>(*this, h, system.spans().adapter_of(name + ".adapter.requester")));
    system.end(h).device->set_span_source(hosts_.back().get());
  }
  if (writer_) add_rows();
  system.follow();
  system.spans().follow(&followed_);
}

void network_trace::add_rows() {
  for (unsigned h = 0; h < system_.hosts(); ++h) {
    const std::string name = system_.host(h).name();
    processes_[name] = writer_->add_process(name);
  }
  for (unsigned s = 0; s < system_.switches(); ++s)
    processes_[system_.middle(s).name()] = writer_->add_process(system_.middle(s).name());
  cables_ = writer_->add_process("cables");
  watch_gauges();
}

network_trace::~network_trace() {
  system_.spans().follow(nullptr);
  for (unsigned h = 0; h < system_.hosts(); ++h) system_.end(h).device->set_span_source(nullptr);
}

void network_trace::watch_gauges() {
  const auto& all = system_.statistics().gauges();
  for (const auto& [name, gauge] : all) {
    const std::size_t dot = name.find('.');
    gauges_.push_back({process_of(name.substr(0, dot)), trace_writer::quoted(name.substr(dot + 1)), 0, false});
  }
  under_way_ = gauges_.size();
  for (unsigned h = 0; h < system_.hosts(); ++h)
    gauges_.push_back({process_of(system_.host(h).name()), "\"messages under way\"", 0, false});
  for (std::size_t i = 0; i < all.size(); ++i) all[i].second->watch(*this, i);
}

trace_writer::process network_trace::process_of(const std::string& name) {
  const auto at = processes_.find(name);
  return at != processes_.end() ? at->second : cables_;
}

void network_trace::begin(sim::time_ps now) {
  active_ = true;
  from_ = now + config_.from;
  until_ = config_.until > ~sim::time_ps{0} - now ? ~sim::time_ps{0} : now + config_.until;
  if (writer_) writer_->set_origin(now);
  if (konata_) konata_->set_origin(now);
  records_ = std::make_unique<record_queue>([this](const record_queue::batch& b) { read(b); });
}

trace_counts network_trace::finish() {
  followed_.finish();
  if (records_) records_->finish();
  for (gauge_state& g : gauges_)
    if (!g.told && g.value != 0) writer_->counter(g.of, g.name, from_, g.value);
  counts_.not_followed = followed_.not_followed();
  counts_.late_marks = followed_.late_marks();
  active_ = false;
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
  record r;
  r.gauge = gauge;
  r.value = value;
  r.at[0] = at;
  records_->add(&r, 1);
  records_->end_record();
}

void network_trace::count_under_way(unsigned host, std::uint64_t number, sim::time_ps now) {
  if (writer_ && number != under_way_of_[host]) changed(under_way_ + host, number, now);
  under_way_of_[host] = number;
}

/// One that has not changed since the window began is told of with its first change.
void network_trace::write_counter(std::size_t gauge, std::uint64_t value, sim::time_ps at) {
  gauge_state& g = gauges_[gauge];
  if (in_window(at)) {
    if (!g.told && g.value != 0) writer_->counter(g.of, g.name, from_, g.value);
    g.told = true;
    writer_->counter(g.of, g.name, at, value);
  }
  g.value = value;
}

// ---------------------------------------------------------------- what is posted and polled

std::uint32_t network_trace::flow_of(unsigned host, const std::string& name) {
  for (std::uint32_t i = 0; i < flows_.size(); ++i)
    if (flows_[i].name == name && flows_[i].host == host) return i;
  const bool followed =
      config_.flows.empty() || std::find(config_.flows.begin(), config_.flows.end(), name) != config_.flows.end();
  const auto row = writer_ ? writer_->add_block(process_of(system_.host(host).name()), "messages of " + name) : 0;
  flows_.push_back({name, followed && flows_.size() < most_flows, row, host});
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

void network_trace::sends(unsigned host, std::uint32_t qpn, const std::string& name) {
  senders_[sender_key(host, qpn)].flow = flow_of(host, name);
}

void network_trace::waited(unsigned host, std::uint32_t qpn, sim::time_ps since) {
  senders_[sender_key(host, qpn)].waits.push_back(since);
}

std::uint32_t network_trace::post(unsigned host, unsigned adapter, const ibv_qp& qp,
                                  const host_driver::span_source_if::posted& requests) {
  const auto at = senders_.find(sender_key(host, qp.qp_num));
  if (!active_ || at == senders_.end() || !flows_[at->second.flow].followed) return 0;
  sender& s = at->second;
  sim::span_id first = 0;
  const ibv_send_wr* wr = requests.first;
  for (std::uint32_t i = 0; i < requests.count; ++i, wr = wr->next) {
    sim::time_ps since = requests.called_ps;
    if (!s.waits.empty()) {
      since = s.waits.front();
      s.waits.pop_front();
    }
    if (!in_window(since)) continue;
    const sim::request_key key{adapter, qp.qp_num, static_cast<std::uint16_t>(requests.index + i)};
    const message_note note{bytes_of(*wr), static_cast<std::uint16_t>(s.flow), verb_number(*wr)};
    const sim::span_id id = followed_.open(key, packed(note), since);
    if (id == 0) continue;
    if (since < requests.called_ps)
      followed_.leave(
          id, {sim::kept_name(processors_[host]), konata_writer::arrived, sim::wait::software, requests.called_ps});
    if (first == 0)
      first = id;
    else
      followed_.join(first, id);
    count_under_way(host, under_way_of_[host] + 1, system_.now_ps());
  }
  return followed_.rung(first);
}

void network_trace::poll(unsigned host, unsigned adapter, const ibv_qp& qp, std::uint32_t first, std::uint32_t last,
                         const ibv_wc& wc) {
  if (!active_) return;
  const sim::time_ps now = system_.now_ps();
  const std::uint64_t before = followed_.under_way();
  for (std::uint32_t i = first; i != last + 1; ++i)
    followed_.polled({adapter, qp.qp_num, static_cast<std::uint16_t>(i)}, now,
                     i == last ? static_cast<std::uint8_t>(wc.status) : std::uint8_t{0}, processors_[host]);
  latest_ = std::max(latest_, now);
  count_under_way(host, under_way_of_[host] - (before - followed_.under_way()), now);
}

// ---------------------------------------------------------------- to the thread that writes

/// Others have posted, or will post, at `latest_` less what hosts are simulated ahead of each other, or later.
void network_trace::take(const sim::followed_request& r) {
  record out;
  out.what = record::kind::message;
  out.status = r.status;
  out.polled = r.polled;
  out.key = r.key;
  out.value = r.what;
  if (konata_ && ++taken_ % konata_interval == 0)
    out.nothing_before = std::min(followed_.earliest(), latest_ - std::min(latest_, system_.lookahead()));
  const sim::followed_request::way* const ways[] = {&r.path, &r.beside, &r.beside_answer};
  for (unsigned i = 0; i < 3; ++i) {
    out.marks[i] = static_cast<std::uint32_t>(ways[i]->marks.size());
    out.at[i] = ways[i]->start;
  }
  records_->add(&out, 1);
  for (const auto* w : ways) records_->add(w->marks.data(), w->marks.size());
  records_->end_record();
}

void network_trace::read(const record_queue::batch& b) {
  sim::followed_request::way* const ways[] = {&read_.path, &read_.beside, &read_.beside_answer};
  for (std::size_t at = 0; at != b.size();) {
    record r;
    std::memcpy(&r, b.data() + at, sizeof r);
    at += sizeof r;
    if (r.what == record::kind::gauge) {
      write_counter(r.gauge, r.value, r.at[0]);
      continue;
    }
    read_.key = r.key;
    read_.what = r.value;
    read_.polled = r.polled;
    read_.status = r.status;
    for (unsigned i = 0; i < 3; ++i) {
      ways[i]->start = r.at[i];
      ways[i]->marks.resize(r.marks[i]);
      const std::size_t bytes = r.marks[i] * sizeof(sim::span::mark);
      if (bytes != 0) std::memcpy(ways[i]->marks.data(), b.data() + at, bytes);
      at += bytes;
    }
    ++counts_.messages;
    if (!r.polled) ++counts_.unfinished;
    if (writer_) write_events(read_);
    if (konata_) write_konata(read_, r.nothing_before);
  }
}

// ---------------------------------------------------------------- what is written

std::string_view network_trace::quoted(const char* text) {
  std::string& t = texts_[text];
  if (t.empty()) t = trace_writer::quoted(text);
  return t;
}

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
  if (k.block != m.block || k.stage != m.stage) k = {m.block, m.stage, &block_of(m.block), quoted(m.stage)};
  return k;
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
    const trace_writer::place at = writer_->slice(stage.of->row, stage.name, std::min(begin, m.at), m.at,
                                                  {details.data(), static_cast<std::size_t>(end - details.data())});
    begin = std::max(begin, m.at);
    if (at.row == 0 || stage.of->is_cable) continue;
    if (last.row != 0 && last.of != at.of) writer_->arrow(last, at);
    last = at;
  }
}

void network_trace::write_message(const sim::followed_request& r, std::string_view message) {
  const message_note note = unpacked(r.what);
  const flow_at_host& f = flows_[note.flow];
  const char* const verb = note.verb == no_verb ? "other" : workloads::verbs()[note.verb].name;
  const sim::time_ps end = r.path.marks.empty() ? r.path.start : r.path.marks.back().at;
  std::string details(message);
  details += ",\"verb\":\"" + std::string(verb) + "\",\"bytes\":" + std::to_string(note.bytes) +
             ",\"qpn\":" + std::to_string(r.key.qpn) + ",\"index\":" + std::to_string(r.key.index) +
             ",\"latency_ps\":" + std::to_string(end - r.path.start);
  if (!r.polled) details += ",\"unfinished\":true";
  if (r.status != 0)
    details += ",\"status\":\"" + std::string(hosts::to_string(static_cast<ibv_wc_status>(r.status))) + "\"";
  writer_->slice(f.row, quoted(verb), r.path.start, end, details);
}

void network_trace::write_konata(const sim::followed_request& r, sim::time_ps nothing_before) {
  const message_note note = unpacked(r.what);
  const flow_at_host& f = flows_[note.flow];
  konata_->add(r, counts_.messages, f.host,
               f.name + " " + (note.verb == no_verb ? "other" : workloads::verbs()[note.verb].name) + " " +
                   std::to_string(note.bytes) + " qpn " + std::to_string(r.key.qpn) + " index " +
                   std::to_string(r.key.index));
  konata_->write_before(nothing_before);
}

void network_trace::write_events(const sim::followed_request& r) {
  std::array<char, 32> text;
  std::memcpy(text.data(), "\"m\":", 4);
  const auto end = std::to_chars(text.data() + 4, text.data() + text.size(), counts_.messages).ptr;
  const std::string_view message(text.data(), static_cast<std::size_t>(end - text.data()));
  write_message(r, message);
  write_way(r.path, message);
  if (r.beside.marks.empty() && r.beside_answer.marks.empty()) return;
  const std::string beside = std::string(message) + ",\"beside\":true";
  write_way(r.beside, beside);
  write_way(r.beside_answer, beside);
}

}  // namespace rnic::bench
