// SPDX-License-Identifier: Apache-2.0
// Soak: is everything where it belongs, and is it over?
#include <algorithm>
#include <cstring>

#include "host_driver/device.h"
#include "testbenches/bench/soak.h"
#include "testbenches/bench/soak_places.h"

namespace rnic::bench {

namespace {

constexpr std::size_t most_findings = 100;
constexpr sim::time_ps settling = 5000 * sim::ps_per_us;  // after the last completion: what comes late shows
/// An acknowledgement of a WRITE says that the responder has the bytes, not that its memory has them (IBA 9.7.5.1.6).
/// On their way through PCI Express they take this long at the most, or, where the host is slow to take them, until it
/// has taken twice what port and responder hold: they are in front of that. Of a host that takes nothing, the last one.
constexpr sim::time_ps longest_posted = 20 * sim::ps_per_us, longest_standstill = 1000 * sim::ps_per_us;

const char* state_name(ibv_qp_state s) {
  constexpr const char* names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return static_cast<unsigned>(s) < 7 ? names[s] : "unknown";
}

}  // namespace

void soak::check_received(flow& f, message& m, const ibv_wc& wc) {
  const workloads::verb& v = *verbs_[m.verb];
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
  if (verbs_[m.verb]->atomic) check_original(f, m);
  const std::uint64_t key = key_of(f, m.number);
  std::size_t wrong = verbs_[m.verb]->atomic ? m.size : wrong_content(place + m.begin, m.size, key);
  const adapter::config& nic = system_.built_from(host).adapter;
  const std::uint64_t held = nic.port.ingress_bytes + std::uint64_t{nic.responder.slots} * connection_.mtu;
  const std::uint64_t taken = bytes_written(host), enough = 2 * held;
  const auto may_come = [&](sim::time_ps waited) {
    return waited < longest_posted || (waited < longest_standstill && bytes_written(host) - taken < enough);
  };
  for (sim::time_ps waited = 0; wrong != m.size && is_plain_write(m) && may_come(waited); waited += 100'000) {
    if (waited == 0) ++result_.acknowledged_early;
    end(host).bus->spend_ps(100'000);
    wrong = wrong_content(place + m.begin, m.size, key);
  }
  if (wrong != m.size) find_stranger(f, m, wrong);
  if (wrong_fallow(place, m.begin) != m.begin || wrong_fallow(place + m.begin + m.size, guard) != guard)
    find(result_.corrupted, f, m, std::string("bytes beside it were written when it was ") + when);
}

/// By the adapter into memory of the host.
std::uint64_t soak::bytes_written(unsigned host) const {
  return system_.statistics().value(system_.name(host) + ".root_complex.write_bytes");
}

void soak::check_original(flow& f, const message& m) {
  std::uint64_t original;
  std::memcpy(&original, at(f, m, f.from) + m.begin, sizeof original);
  const std::string wrong = atomics_.returned(m.atomic, f.from, original);
  if (!wrong.empty()) find(result_.corrupted, f, m, wrong);
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

void soak::look_for_hangs() {
  next_look_ = system_.now_ps() + look_interval;
  for (flow& f : flows_) {
    if (f.hung || finished(f) || f.over == f.posted) continue;
    if (system_.now_ps() - f.sign_of_life > patience()) report_hang(f);
  }
}

void soak::report_hang(flow& f) {
  f.hung = true;
  atomics_.failed(f.index, f.from);
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
  for (const soak_atomics::finding& f : atomics_.look()) {
    ++(f.again ? result_.duplicated : result_.corrupted);
    note(f.text);
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
