// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/trace/message_follower.h"

#include <algorithm>

#include "testbenches/bench/trace/message_note.h"
#include "testbenches/bench/trace/stages_text.h"

namespace rnic::bench {

namespace {

constexpr std::uint64_t messages_at_a_time = 256;  // after which it is looked up how far time has gone for all

std::uint64_t sender_key(unsigned host, std::uint32_t qpn) { return std::uint64_t{host} << 32 | qpn; }

}  // namespace

/// What the driver of a host posts and polls.
class message_follower::host_watcher final : public host_driver::span_source_if {
 public:
  host_watcher(message_follower& of, unsigned host, unsigned adapter) : of_(of), host_(host), adapter_(adapter) {}
  std::uint32_t span_for(const ibv_qp& qp, const posted& requests) override {
    return of_.post(host_, adapter_, qp, requests);
  }
  void polled(const ibv_qp& qp, std::uint32_t first, std::uint32_t last, const ibv_wc& wc) override {
    of_.poll(host_, adapter_, qp, first, last, wc);
  }

 private:
  message_follower& of_;
  unsigned host_, adapter_;
};

message_follower::message_follower(const watched_system& system, const message_choice& which, message_sink_if* to)
    : system_(system), which_(which), to_(to), followed_(which.followed, *this), under_way_(system.hosts.size()) {
  for (unsigned h = 0; h < system_.hosts.size(); ++h) {
    const watched_system::host& host = system_.hosts[h];
    processors_.push_back(host.name + ".processor");
    hosts_.push_back(
        std::make_unique<host_watcher>(*this, h, system_.spans->adapter_of(host.name + ".adapter.requester")));
    host.device->set_span_source(hosts_.back().get());
    if (!which_.others.empty()) flow_of(h, which_.others);
  }
  system_.spans->follow(&followed_);
}

message_follower::~message_follower() {
  system_.spans->follow(nullptr);
  for (const watched_system::host& host : system_.hosts) host.device->set_span_source(nullptr);
}

void message_follower::begin(sim::time_ps now) {
  active_ = true;
  from_ = now + which_.from;
  until_ = which_.until > ~sim::time_ps{0} - now ? ~sim::time_ps{0} : now + which_.until;
}

void message_follower::finish() {
  followed_.finish();
  active_ = false;
}

// ---------------------------------------------------------------- flows

std::uint32_t message_follower::flow_of(unsigned host, const std::string& name) {
  for (std::uint32_t i = 0; i < flows_.size(); ++i)
    if (flows_[i].name == name && flows_[i].host == host) return i;
  const bool chosen =
      which_.flows.empty() || std::find(which_.flows.begin(), which_.flows.end(), name) != which_.flows.end();
  const auto number = static_cast<std::uint32_t>(flows_.size());
  flows_.push_back({name, chosen && number < message_note::most_flows, host});
  if (to_ != nullptr) to_->add_flow(number, name, host);
  return number;
}

void message_follower::sends(unsigned host, std::uint32_t qpn, const std::string& name) {
  senders_[sender_key(host, qpn)].flow = flow_of(host, name);
}

void message_follower::waited(unsigned host, std::uint32_t qpn, sim::time_ps since) {
  senders_[sender_key(host, qpn)].waits.push_back(since);
}

/// nullptr: its messages are not followed.
message_follower::sender* message_follower::sender_of(unsigned host, std::uint32_t qpn) {
  auto at = senders_.find(sender_key(host, qpn));
  if (at == senders_.end()) {
    if (which_.others.empty()) return nullptr;
    at = senders_.emplace(sender_key(host, qpn), sender{flow_of(host, which_.others), {}}).first;
  }
  return flows_[at->second.flow].followed ? &at->second : nullptr;
}

// ---------------------------------------------------------------- what is posted and polled

void message_follower::count_under_way(unsigned host, std::uint64_t number, sim::time_ps now) {
  if (to_ != nullptr && number != under_way_[host]) to_->under_way(host, number, now);
  under_way_[host] = number;
}

std::uint32_t message_follower::post(unsigned host, unsigned adapter, const ibv_qp& qp,
                                     const host_driver::span_source_if::posted& requests) {
  sender* const s = active_ ? sender_of(host, qp.qp_num) : nullptr;
  if (s == nullptr) return 0;
  sim::span_id first = 0;
  const ibv_send_wr* wr = requests.first;
  for (std::uint32_t i = 0; i < requests.count; ++i, wr = wr->next) {
    sim::time_ps since = requests.called_ps;
    if (!s->waits.empty()) {
      since = s->waits.front();
      s->waits.pop_front();
    }
    if (!in_window(since)) continue;
    const sim::request_key key{adapter, qp.qp_num, static_cast<std::uint16_t>(requests.index + i)};
    const sim::span_id id =
        followed_.open(key, message_note::of(*wr, static_cast<std::uint16_t>(s->flow)).packed(), since);
    if (id == 0) continue;
    if (since < requests.called_ps)
      followed_.leave(
          id, {sim::kept_name(processors_[host]), message_sink_if::arrived, sim::wait::software, requests.called_ps});
    if (first == 0)
      first = id;
    else
      followed_.join(first, id);
    count_under_way(host, under_way_[host] + 1, system_.now_ps());
  }
  return followed_.rung(first);
}

void message_follower::poll(unsigned host, unsigned adapter, const ibv_qp& qp, std::uint32_t first, std::uint32_t last,
                            const ibv_wc& wc) {
  if (!active_) return;
  const sim::time_ps now = system_.now_ps();
  const std::uint64_t before = followed_.under_way();
  for (std::uint32_t i = first; i != last + 1; ++i)
    followed_.polled({adapter, qp.qp_num, static_cast<std::uint16_t>(i)}, now,
                     i == last ? static_cast<std::uint8_t>(wc.status) : std::uint8_t{0}, processors_[host]);
  latest_ = std::max(latest_, now);
  count_under_way(host, under_way_[host] - (before - followed_.under_way()), now);
}

/// Others have posted, or will post, at `latest_` less what hosts are simulated ahead of each other, or later.
void message_follower::take(const sim::followed_request& r) {
  if (to_ == nullptr) return;
  if (++taken_ % messages_at_a_time == 0)
    nothing_before_ = std::min(followed_.earliest(), latest_ - std::min(latest_, system_.ahead));
  to_->take(r, nothing_before_);
}

// ---------------------------------------------------------------- comments

void message_follower::describe(const payload::frame& f, sim::time_ps first_bit, sim::time_ps cable,
                                std::string& text) {
  const sim::span_id id = f.span != 0 ? f.span : f.part_of;
  text.clear();
  if (id == 0 || !followed_.so_far(id, described_)) return;
  const flow_at_host& flow = flows_[message_note::unpacked(described_.what).flow];
  put_message({described_.number, described_.what, flow.name, system_.hosts[flow.host].name, described_.key.qpn,
               described_.key.index},
              described_.path.start, first_bit + cable, text);
  if (f.span != 0) put_stages(described_.path, first_bit, cable, text);
}

}  // namespace rnic::bench
