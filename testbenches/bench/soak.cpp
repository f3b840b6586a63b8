// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/soak.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "host_driver/device.h"

namespace rnic::bench {

namespace {

constexpr std::uint32_t guard = 32;      // bytes on each side of a message
constexpr std::uint32_t most_skew = 16;  // messages begin at any alignment
constexpr unsigned poll_batch = 32;
constexpr std::uint64_t receive_id = std::uint64_t{1} << 63;  // of a wr_id; flow in 62:40, message in 39:0
constexpr unsigned flow_shift = 40;
constexpr std::size_t most_findings = 100;
constexpr unsigned most_sges = 3;
constexpr sim::time_ps first_slice = sim::ps_per_us, longest_slice = 50 * sim::ps_per_us;
constexpr sim::time_ps look_interval = 1000 * sim::ps_per_us;
constexpr sim::time_ps settling = 5000 * sim::ps_per_us;  // after the last completion: what comes late shows
/// An acknowledgement of a WRITE says that the responder has the bytes, not that its memory has them (IBA 9.7.5.1.6):
/// on their way through PCI Express they may take this long.
constexpr sim::time_ps longest_posted = 20 * sim::ps_per_us;
constexpr sim::time_ps most_late = 30 * sim::ps_per_us;  // receives

std::uint64_t id_of(unsigned flow, std::uint64_t number, bool receive) {
  return (receive ? receive_id : 0) | std::uint64_t{flow} << flow_shift | number;
}

/// Every verb's row. A verb whose effect is not a copy of bytes needs its own check in soak::check_content.
const std::vector<soak_verb> table = {
    {"send", IBV_WR_SEND, IBV_WC_SEND, true, IBV_WC_RECV, false, false},
    {"send_imm", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, true, IBV_WC_RECV, true, false},
    {"write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, false, IBV_WC_RECV, false, false},
    {"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, true, IBV_WC_RECV_RDMA_WITH_IMM, true, false},
    {"read", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, false, IBV_WC_RECV, false, true},
};

bool is_write(const soak_verb& v) { return v.opcode == IBV_WR_RDMA_WRITE || v.opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }

const char* state_name(ibv_qp_state s) {
  constexpr const char* names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return static_cast<unsigned>(s) < 7 ? names[s] : "unknown";
}

}  // namespace

const std::vector<soak_verb>& soak_verbs() { return table; }

soak::soak(two_nodes& system, const connection_options& connection, const soak_config& config)
    : system_(system), connection_(connection), config_(config) {
  for (std::size_t i = 0; i < table.size(); ++i)
    if ((config.verbs >> i & 1) != 0) verbs_.push_back(&table[i]);
  if (verbs_.empty()) throw std::runtime_error("a soak needs a verb");
  ring_bytes_ = 2 * (config.largest + 2 * guard + 2 * most_skew + 64);
  connection_.send_depth = config.depth + 1;
  connection_.receive_depth = config.depth + 1;
  connection_.send_sges = most_sges;
  connection_.receive_sges = 1;
  connection_.inline_bytes = 64;
  flows_.resize(std::size_t{config.qps} * 2);
  for (unsigned i = 0; i < flows_.size(); ++i) {
    flow& f = flows_[i];
    f.from = i % 2;
    f.index = i;
    f.ring = std::uint64_t{i} * ring_bytes_;
    f.target = config.messages / flows_.size() + (i < config.messages % flows_.size() ? 1 : 0);
    f.places = place_ring(ring_bytes_);
    f.under_way.resize(config.depth);
    f.random = soak_random(content_key(config.seed, i, ~std::uint64_t{0}));
  }
  result_.by_verb.resize(table.size());
}

sim::time_ps soak::patience() const {
  const std::uint64_t packets = config_.largest / connection_.mtu + 2;
  const std::uint64_t timeout = (sim::time_ps{4'096'000} << connection_.ack_timeout) * 4;  // IBA 9.7.6.1.3
  const std::uint64_t tries =
      connection_.retries + 1 + (connection_.retries == 7 ? system_.config().node.adapter.requester.extra_retries : 0);
  return timeout * tries * packets;
}

void soak::set_up(unsigned host) {
  endpoint& e = end(host);
  set_address(e, connection_, host + 1);
  const std::size_t bytes = std::size_t{ring_bytes_} * flows_.size();
  memory_[host] = make_buffer(e, bytes);
  make_fallow(memory_[host].at(), bytes);
  const std::uint64_t entries = std::uint64_t{config_.qps} * config_.depth * 2 + 64;
  cq_[host] = e.device->create_cq(static_cast<int>(entries));
  if (cq_[host] == nullptr) throw std::runtime_error("create_cq failed");
  for (std::size_t i = 0; i < flows_.size(); i += 2)
    flows_[i].qp[host] = flows_[i + 1].qp[host] = make_qp(e, connection_, *cq_[host], *cq_[host]);
  system_.meet();
  for (std::size_t i = 0; i < flows_.size(); i += 2) {
    // Packet numbers begin anywhere, some just before they wrap; the two ends know each other's.
    soak_random psns(content_key(config_.seed, i, ~std::uint64_t{1}));
    std::uint32_t first[2];
    for (std::uint32_t& psn : first)
      psn = psns.below(2) == 0 ? 0xffffff - static_cast<std::uint32_t>(psns.below(64))
                               : static_cast<std::uint32_t>(psns.below(1u << 24));
    connect(e, connection_, *flows_[i].qp[host], end(1 - host), flows_[i].qp[1 - host]->qp_num, first[host],
            first[1 - host]);
  }
  system_.meet();
}

void soak::program_b() { set_up(1); }

void soak::program_a() {
  set_up(0);
  run();
}

void soak::run() {
  start_ = system_.now_ps();
  for (flow& f : flows_) f.sign_of_life = start_;
  next_look_ = start_ + look_interval;
  while (!all_finished()) {
    bool moved = false;
    for (flow& f : flows_) {
      if (f.receives < f.posted) post_receives(f, true);
      moved |= fill(f);
    }
    for (unsigned host = 0; host < 2; ++host) moved |= take_completions(host);
    if (moved) {
      slice_ = first_slice;
      result_.elapsed = system_.now_ps() - start_;
    } else {
      wait_a_little();
    }
    if (system_.now_ps() >= next_look_) look_for_hangs();
  }
  last_look();
}

bool soak::all_finished() const {
  return std::all_of(flows_.begin(), flows_.end(), [](const flow& f) { return f.hung || finished(f); });
}

/// The polling loop spins on one queue after the other, less often the longer nothing comes.
void soak::wait_a_little() {
  std::array<ibv_wc, 1> none{};
  for (unsigned host = 0; host < 2; ++host)
    if (end(host).device->wait_cq(cq_[host], 0, none.data(), slice_) != 0) break;
  slice_ = std::min(slice_ * 2, longest_slice);
}

// ---------------------------------------------------------------- posting

std::uint32_t soak::draw_size(flow& f) {
  const std::uint32_t mtu = connection_.mtu;
  if (f.random.below(8) == 0) {  // the edges
    const std::array<std::uint32_t, 8> edges{0, 1, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu - 1, config_.largest};
    return std::min(edges[f.random.below(edges.size())], config_.largest);
  }
  unsigned bits = 0;
  while (bits < 32 && config_.largest >> bits != 0) ++bits;
  const auto magnitude = static_cast<unsigned>(f.random.below(bits + 1));
  if (magnitude == 0) return 0;
  const std::uint32_t low = 1u << (magnitude - 1);
  return std::min(low + static_cast<std::uint32_t>(f.random.below(low)), config_.largest);
}

/// Decides what the next message is and takes a place for it. False: no room.
bool soak::draw(flow& f, message& m) {
  const soak_random before = f.random;
  m = message{};
  m.number = f.posted;
  m.verb = static_cast<unsigned>(f.random.below(verbs_.size()));
  m.size = draw_size(f);
  m.begin = guard + static_cast<std::uint32_t>(f.random.below(most_skew));
  m.span = m.begin + m.size + guard;
  m.place = f.places.take(m.span);
  if (m.place != place_ring::none) return true;
  f.random = before;
  return false;
}

bool soak::fill(flow& f) {
  bool any = false;
  while (!f.dead && !f.hung && f.posted < f.target && f.posted - f.over < config_.depth) {
    message& m = slot(f, f.posted);
    if (!draw(f, m)) break;
    for (unsigned host = 0; host < 2; ++host)
      if (wrong_fallow(at(f, m, host), m.span) != m.span)
        find(result_.duplicated, f, m, "the memory for it was written after the message before was over");
    fill_content(at(f, m, source_of(f, m)) + m.begin, m.size, key_of(f, m.number));
    if (f.over == f.posted) f.sign_of_life = system_.now_ps();
    ++f.posted;
    post_receives(f, false);
    post(f, m);
    any = true;
  }
  return any;
}

void soak::post(flow& f, message& m) {
  const soak_verb& v = *verbs_[m.verb];
  std::array<ibv_sge, most_sges> sges{};
  std::uint64_t address = memory_[f.from].address(f.ring + m.place + m.begin);
  std::uint32_t left = m.size;
  unsigned count = 0;
  const std::uint64_t pieces = 1 + (f.random.below(4) == 0 ? f.random.below(most_sges) : 0);
  while (left != 0) {
    const bool last = count + 1 == pieces || left == 1;
    const std::uint32_t length = last ? left : 1 + static_cast<std::uint32_t>(f.random.below(left - 1));
    sges[count++] = {address, length, memory_[f.from].region->lkey};
    address += length;
    left -= length;
  }
  ibv_send_wr wr{};
  wr.wr_id = id_of(f.index, m.number, false);
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(count);
  wr.opcode = v.opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (!v.reads && m.size <= connection_.inline_bytes && f.random.below(2) == 0) wr.send_flags |= IBV_SEND_INLINE;
  if (f.random.below(32) == 0) wr.send_flags |= IBV_SEND_FENCE;
  wr.imm_data = __builtin_bswap32(static_cast<std::uint32_t>(m.number));
  if (is_write(v) || v.reads) {
    wr.wr.rdma.remote_addr = memory_[1 - f.from].address(f.ring + m.place + m.begin);
    wr.wr.rdma.rkey = memory_[1 - f.from].region->rkey;
  }
  ibv_send_wr* bad = nullptr;
  require(end(f.from).device->post_send(f.qp[f.from], &wr, &bad), "post_send");
  for (std::size_t i = 0; i < table.size(); ++i)
    if (&table[i] == &v) ++result_.by_verb[i];
  ++result_.posted;
}

/// Receives go in order; one that is late holds up those behind it.
void soak::post_receives(flow& f, bool late) {
  for (; f.receives < f.posted && !f.dead; ++f.receives, f.receive_at = 0) {
    const message& m = slot(f, f.receives);
    const soak_verb& v = *verbs_[m.verb];
    if (!v.receives) continue;
    if (f.receive_at == 0 && config_.late_receives != 0 && f.random.below(config_.late_receives) == 0)
      f.receive_at = system_.now_ps() + f.random.below(most_late);
    if (f.receive_at != 0 && (!late || f.receive_at > system_.now_ps())) return;
    const unsigned host = 1 - f.from;
    ibv_sge sge{memory_[host].address(f.ring + m.place + m.begin), m.size, memory_[host].region->lkey};
    sge.length += static_cast<std::uint32_t>(f.random.below(guard));  // a buffer may be longer than what comes
    ibv_recv_wr wr{};
    wr.wr_id = id_of(f.index, m.number, true);
    wr.sg_list = &sge;
    wr.num_sge = is_write(v) || sge.length == 0 ? 0 : 1;
    ibv_recv_wr* bad = nullptr;
    require(end(host).device->post_recv(f.qp[host], &wr, &bad), "post_recv");
  }
}

// ---------------------------------------------------------------- completions

bool soak::take_completions(unsigned host) {
  std::array<ibv_wc, poll_batch> wcs{};
  const int n = end(host).device->poll_cq(cq_[host], poll_batch, wcs.data());
  require(n, "poll_cq");
  for (int i = 0; i < n; ++i) {
    const ibv_wc& wc = wcs[static_cast<unsigned>(i)];
    flow& f = flows_.at(wc.wr_id << 1 >> (flow_shift + 1));
    f.sign_of_life = system_.now_ps();
    if ((wc.wr_id & receive_id) != 0)
      take_received(f, wc);
    else
      take_sent(f, wc);
    retire(f);
  }
  return n > 0;
}

void soak::take_sent(flow& f, const ibv_wc& wc) {
  const std::uint64_t number = wc.wr_id & ((std::uint64_t{1} << flow_shift) - 1);
  message& m = slot(f, number);
  if (number >= f.posted || number < f.over || m.sent) {
    ++result_.duplicated;
    return note("flow " + std::to_string(f.index) + ": message " + std::to_string(number) + " completed again");
  }
  if (number != f.sent) find(result_.reordered, f, m, "completed before message " + std::to_string(f.sent));
  f.sent = number + 1;
  m.sent = true;
  if (wc.status != IBV_WC_SUCCESS) {
    m.failed = true;
    if (wc.status == IBV_WC_WR_FLUSH_ERR)
      ++result_.flushed;
    else
      find(result_.errors, f, m,
           std::string("ended with ") + to_string(wc.status) + ", vendor error " + std::to_string(wc.vendor_err));
    return die(f);
  }
  const soak_verb& v = *verbs_[m.verb];
  if (wc.opcode != v.sent) find(result_.corrupted, f, m, "completed as another operation");
  if (v.reads && wc.byte_len != m.size) find(result_.corrupted, f, m, "completed with another length");
  if (!v.receives) check_content(f, m, "completed");
}

void soak::take_received(flow& f, const ibv_wc& wc) {
  const std::uint64_t number = wc.wr_id & ((std::uint64_t{1} << flow_shift) - 1);
  message& m = slot(f, number);
  if (wc.status == IBV_WC_WR_FLUSH_ERR) return die(f);
  if (number >= f.posted || number < f.over || m.received) {
    ++result_.duplicated;
    return note("flow " + std::to_string(f.index) + ": message " + std::to_string(number) + " was received again");
  }
  m.received = true;
  if (wc.status != IBV_WC_SUCCESS) {
    find(result_.errors, f, m, std::string("receive ended with ") + to_string(wc.status));
    return die(f);
  }
  for (; f.receive_scan < number; ++f.receive_scan) {
    const message& before = slot(f, f.receive_scan);
    if (f.receive_scan >= f.over && verbs_[before.verb]->receives && !before.received)
      find(result_.reordered, f, m, "was received before message " + std::to_string(f.receive_scan));
  }
  check_received(f, m, wc);
}

void soak::check_received(flow& f, message& m, const ibv_wc& wc) {
  const soak_verb& v = *verbs_[m.verb];
  const bool immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (wc.opcode != v.received || immediate != v.immediate)
    find(result_.corrupted, f, m, "was received as another operation");
  else if (wc.byte_len != m.size)
    find(result_.corrupted, f, m, "was received with " + std::to_string(wc.byte_len) + " bytes");
  else if (immediate && __builtin_bswap32(wc.imm_data) != static_cast<std::uint32_t>(m.number))
    find(result_.reordered, f, m, "was received with the immediate of another message");
  check_content(f, m, "received");
}

/// The message must be at its destination, whole, with nothing written beside it.
void soak::check_content(flow& f, message& m, const char* when) {
  const unsigned host = 1 - source_of(f, m);
  const std::uint8_t* place = at(f, m, host);
  const std::uint64_t key = key_of(f, m.number);
  std::size_t wrong = wrong_content(place + m.begin, m.size, key);
  for (sim::time_ps waited = 0; wrong != m.size && is_plain_write(m) && waited < longest_posted; waited += 100'000) {
    if (waited == 0) ++result_.acknowledged_early;
    end(host).bus->spend_ps(100'000);
    wrong = wrong_content(place + m.begin, m.size, key);
  }
  if (wrong != m.size) find_stranger(f, m, wrong);
  if (wrong_fallow(place, m.begin) != m.begin || wrong_fallow(place + m.begin + m.size, guard) != guard)
    find(result_.corrupted, f, m, std::string("bytes beside it were written when it was ") + when);
}

/// Wrong bytes: those of another message of the flow?
void soak::find_stranger(flow& f, const message& m, std::size_t wrong) {
  constexpr std::uint64_t reach = 64;
  const std::uint8_t* bytes = at(f, m, 1 - source_of(f, m)) + m.begin;
  for (std::uint64_t n = m.number < reach ? 0 : m.number - reach; n < m.number + reach && m.size >= 8; ++n) {
    if (n == m.number || wrong_content(bytes, 8, key_of(f, n)) != 8) continue;
    if (n < m.number) return find(result_.duplicated, f, m, "has the bytes of message " + std::to_string(n));
    return find(result_.reordered, f, m, "has the bytes of message " + std::to_string(n));
  }
  find(result_.corrupted, f, m, "byte " + std::to_string(wrong) + " is wrong");
}

/// The oldest messages that are over lie fallow again.
void soak::retire(flow& f) {
  if (f.dead && !ending_) return;  // a receive's completion may still be on its way
  while (f.over < f.posted) {
    message& m = slot(f, f.over);
    const bool receives = verbs_[m.verb]->receives && !ending_;
    if (!m.sent || (receives && !m.received)) return;
    if (!m.failed && (m.received || !verbs_[m.verb]->receives)) {
      ++result_.completed;
      result_.bytes += m.size;
    } else if (!m.failed) {
      find(result_.lost, f, m, "was never received");
    }
    for (unsigned host = 0; host < 2; ++host) make_fallow(at(f, m, host), m.span);
    f.places.give(m.place, m.span);
    ++f.over;
    if (on_progress && result_.completed % 1024 == 0) on_progress(result_.completed);
  }
}

/// Its queue pairs are in error: nothing more is posted, and of what is under way only the sender's completions count.
void soak::die(flow& f) {
  for (const unsigned i : {f.index & ~1u, f.index | 1u}) flows_[i].dead = true;
}

// ---------------------------------------------------------------- hangs

void soak::look_for_hangs() {
  next_look_ = system_.now_ps() + look_interval;
  for (flow& f : flows_) {
    if (f.hung || finished(f) || f.over == f.posted) continue;
    if (system_.now_ps() - f.sign_of_life > patience()) report_hang(f);
  }
}

void soak::report_hang(flow& f) {
  f.hung = true;
  for (std::uint64_t n = f.over; n < f.posted; ++n) {
    const message& m = slot(f, n);
    // What the sender knows to be done and the receiver never got is lost; the rest hangs.
    if (m.sent && !m.failed)
      find(result_.lost, f, m, "completed, and was not received");
    else
      find(result_.hung, f, m, "neither completed nor failed");
  }
  for (unsigned host = 0; host < 2; ++host) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    const unsigned mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RQ_PSN;
    if (end(host).device->query_qp(f.qp[host], &attr, static_cast<int>(mask), &init) != 0) continue;
    note("flow " + std::to_string(f.index) + ": host " + (host == 0 ? "a" : "b") + (host == f.from ? ", sender" : "") +
         ", QP " + std::to_string(f.qp[host]->qp_num) + " is in " + state_name(attr.qp_state) + ", next PSN to send " +
         std::to_string(attr.sq_psn) + ", next expected " + std::to_string(attr.rq_psn));
  }
}

/// After some silence nothing more may have come, and all memory must lie fallow.
void soak::last_look() {
  end(0).bus->spend_ps(settling);
  while (take_completions(0) || take_completions(1)) {
  }
  ending_ = true;
  for (flow& f : flows_) {
    if (!f.hung) retire(f);
    if (f.over != f.posted) continue;
    for (unsigned host = 0; host < 2; ++host)
      if (wrong_fallow(memory_[host].at(f.ring), ring_bytes_) != ring_bytes_) {
        ++result_.duplicated;
        note("flow " + std::to_string(f.index) + ": memory of host " + (host == 0 ? "a" : "b") +
             " was written after its message was over");
      }
  }
}

void soak::find(std::uint64_t& counter, const flow& f, const message& m, const std::string& what) {
  ++counter;
  note("flow " + std::to_string(f.index) + (f.from == 0 ? " (a to b)" : " (b to a)") + ": message " +
       std::to_string(m.number) + " (" + verbs_[m.verb]->name + ", " + std::to_string(m.size) + " bytes) " + what);
}

void soak::note(const std::string& text) {
  if (result_.findings.size() < most_findings) result_.findings.push_back(text);
}

}  // namespace rnic::bench
