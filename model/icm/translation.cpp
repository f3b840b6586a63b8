// SPDX-License-Identifier: Apache-2.0
#include "model/icm/translation.h"

#include <algorithm>
#include <utility>

#include "model/abi/endian.h"
#include "model/sim/check.h"

namespace rnic::icm {

namespace {
const translation_config& checked(const std::string& name, const translation_config& c, unsigned clients) {
  const unsigned l = c.mtt_line_entries;
  if (l != 1 && l != 2 && l != 4 && l != 8) throw sim::config_error(name + ".mtt_line_entries: 1, 2, 4 or 8");
  if (clients == 0 || clients > 64) throw sim::config_error(name + ": 1..64 clients");
  return sim::checked(c, name);
}
}  // namespace

translation::translation(std::string name, sim::clock_domain& domain, const translation_config& config,
                         const icm_map& map, unsigned clients)
    : clocked_block(name, domain),
      dma(*this),
      config_(checked(this->name(), config, clients)),
      map_(map),
      mpts_(this->name() + ".mpt_entries, .mpt_ways", config.mpt_entries, config.mpt_ways, config.policy),
      mtts_(this->name() + ".mtt_entries, .mtt_ways", config.mtt_entries / config.mtt_line_entries, config.mtt_ways,
            config.policy),
      fills_(config.fills),
      jobs_(config.waiting),
      answers_(clients),
      mpt_reads_(*this, "mpt_reads", config_.mpt_read_ports, {"look_up", "keys"}),
      mpt_writes_(*this, "mpt_memory", config_.mpt_write_ports, {"fills", "keys"}),
      mtt_reads_(*this, "mtt_reads", config_.mtt_read_ports, {"look_up"}),
      keys_(*this, config_.keys, *this) {
  for (unsigned i = 0; i < clients; ++i) {
    request.emplace_back(*this);
    request.back().show_in(asking_, i);
    response.emplace_back(*this);
  }
  while ((1u << log_line_) < config.mtt_line_entries) ++log_line_;
  free_ = config.waiting == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << config.waiting) - 1;
}

void translation::tick() {
  deliver();
  take_fills();
  look_up();
  keys_.work();
}

// ---------------------------------------------------------------- answers

/// At most one answer a client and cycle. What cannot be delivered because the client's channel is full waits.
void translation::deliver() {
  for (std::uint64_t clients = answering_; clients != 0; clients &= clients - 1) {
    const unsigned client = static_cast<unsigned>(__builtin_ctzll(clients));
    answer_queue& q = answers_[client];
    job& j = jobs_[q.jobs[q.head]];
    if (j.ready > now()) {
      wake_at(j.ready);
      continue;
    }
    if (!response[client].claim()) continue;
    response[client].push(j.answer);
    if (j.answer.status != translate_status::ok) ++stats_.refused;
    free_ |= std::uint64_t{1} << q.jobs[q.head];
    q.head = (q.head + 1) % 64;
    if (--q.count == 0)
      answering_ &= ~(std::uint64_t{1} << client);
    else
      wake_at(std::max(now() + 1, jobs_[q.jobs[q.head]].ready));
  }
}

void translation::complete(unsigned index) {
  job& j = jobs_[index];
  if (answers_[j.client].count == 0 && response[j.client].can_push()) {
    response[j.client].push_after(j.answer, config_.translate_cycles);
    answered_at_ = now() + config_.translate_cycles + 1;
    if (j.answer.status != translate_status::ok) ++stats_.refused;
    free_ |= std::uint64_t{1} << index;
    return;
  }
  j.ready = now() + config_.translate_cycles;
  answer_queue& q = answers_[j.client];
  q.jobs[(q.head + q.count) % 64] = static_cast<std::uint8_t>(index);
  ++q.count;
  answering_ |= std::uint64_t{1} << j.client;
  wake_at(j.ready);
}

// ---------------------------------------------------------------- fetches

void translation::take_fills() {
  if (dma.response.can_pop()) {
    const pcie::dma_response answer = dma.response.pop();
    fill& f = fills_[answer.tag];
    f.arrived = true;
    f.failed = answer.status != pcie::dma_status::ok;
    f.usable = now() + config_.miss_cycles;
    ++fills_arrived_;
    if (config_.miss_cycles != 0) wake_at(f.usable);
  }
  if (fills_arrived_ == 0) return;
  for (fill& f : fills_)
    if (f.active && f.arrived && f.usable <= now() && may_finish(f)) finish(f);
}

/// An entry of a region is written into the memory of these.
bool translation::may_finish(const fill& f) {
  return !f.mpt || f.stale || f.failed || mpt_writes_.try_access(by_fills);
}

void translation::finish(fill& f) {
  f.active = f.arrived = false;
  --fills_active_;
  --fills_arrived_;
  if (f.stale) {
    ++stats_.stale;
  } else if (!f.failed) {
    if (f.mpt) {
      mpts_.insert(f.line) = decode_mpt(f.data.data());
    } else {
      mtt_line& line = mtts_.insert(f.line);
      for (unsigned i = 0; i < config_.mtt_line_entries; ++i) line.entry[i] = abi::load64(f.data.data(), 8 * i);
    }
  }
  for (std::uint64_t waiters = f.waiters; waiters != 0; waiters &= waiters - 1) {
    const unsigned index = static_cast<unsigned>(__builtin_ctzll(waiters));
    job& j = jobs_[index];
    if (!f.stale) give(j, f);
    if (--j.fetches == 0) retry_ |= std::uint64_t{1} << index;
  }
}

/// Hands the data to a waiting job at once, so that the line's replacement by another fetch cannot starve it.
void translation::give(job& j, const fill& f) {
  if (f.mpt) {
    j.mpt = f.failed ? mpt_entry{} : decode_mpt(f.data.data());
    if (f.failed) j.mpt.flags = 0xfu << 28;  // as owned by software
    j.have_mpt = true;
    return;
  }
  for (page_part& p : j.pages) {
    if (p.resolved || p.index >> log_line_ != f.line) continue;
    const std::uint64_t position = p.index & (config_.mtt_line_entries - 1);
    p.entry = f.failed ? 0 : abi::load64(f.data.data(), 8 * position);
    p.resolved = true;
  }
}

bool translation::fetch_address(bool mpt, std::uint64_t line, std::uint64_t& bus) const {
  const std::uint32_t bytes = mpt ? mpt_bytes : 8u << log_line_;
  const std::uint64_t icm = mpt ? map_.entry(table::dmpt, static_cast<std::uint32_t>(line))
                                : map_.layout(table::mtt).base + (line << log_line_) * 8;
  if ((icm & 0xfff) + bytes > 0x1000 || (mpt && map_.layout(table::dmpt).entry_bytes < mpt_bytes)) return false;
  const auto address = map_.translate(icm);
  if (address) bus = *address;
  return address.has_value();
}

/// Joins the fetch of the line that is under way or starts one. done: there is nothing to fetch from.
translation::step translation::fetch(bool mpt, std::uint64_t line, unsigned index) {
  for (fill& f : fills_)
    if (f.active && !f.stale && f.mpt == mpt && f.line == line) {
      if ((f.waiters >> index & 1) == 0) {
        f.waiters |= std::uint64_t{1} << index;
        ++jobs_[index].fetches;
        jobs_[index].answer.missed = true;
        ++stats_.merged;
      }
      return step::waits;
    }
  std::uint64_t bus = 0;
  if (!fetch_address(mpt, line, bus)) return step::done;
  if (mpt && keys_.locked(line)) {
    wake_next();
    return step::blocked;
  }
  if (fills_active_ == config_.fills || !dma.request.claim()) return step::blocked;
  unsigned n = 0;
  while (fills_[n].active) ++n;
  fill& f = fills_[n];
  f.active = true;
  f.mpt = mpt;
  f.stale = f.arrived = f.failed = false;
  f.line = line;
  f.waiters = std::uint64_t{1} << index;
  ++fills_active_;
  ++jobs_[index].fetches;
  jobs_[index].answer.missed = true;
  ++(mpt ? stats_.mpt_misses : stats_.mtt_misses);
  pcie::dma_request read;
  read.op = pcie::dma_request::kind::read;
  read.length = mpt ? mpt_bytes : 8u << log_line_;
  read.address = bus;
  read.tag = n;
  read.destination = f.data.data();
  read.span = jobs_[index].request.span;
  dma.request.push(std::move(read));
  return step::waits;
}

// ---------------------------------------------------------------- look-up

/// One look-up a cycle: first what waited longest for a fetch, then new requests.
void translation::look_up() {
  std::uint64_t ready = retry_;
  if (blocked_ != 0 && fills_active_ != config_.fills && dma.request.claim()) ready |= blocked_;
  if (ready != 0) {
    const unsigned index = static_cast<unsigned>(oldest(ready));
    retry_ &= ~(std::uint64_t{1} << index);
    blocked_ &= ~(std::uint64_t{1} << index);
    run(index);
  } else {
    accept();
  }
  if (retry_ != 0 || (ready != 0 && blocked_ != 0) || (free_ != 0 && asking_ != 0)) wake_next();
  look_up_.waits_for(held_up_by());
}

const char* translation::held_up_by() const {
  if (blocked_ != 0) return fills_active_ == config_.fills ? "memory" : dma.request.can_push() ? nullptr : "dma";
  if (free_ != 0) return nullptr;
  for (std::uint64_t rest = asking_; rest != 0; rest &= rest - 1)
    if (request[static_cast<unsigned>(__builtin_ctzll(rest))].can_pop())
      return fills_active_ != 0 ? "memory" : "clients";
  return nullptr;
}

int translation::oldest(std::uint64_t jobs) const {
  int best = -1;
  for (; jobs != 0; jobs &= jobs - 1) {
    const int i = __builtin_ctzll(jobs);
    if (best < 0 || jobs_[static_cast<unsigned>(i)].sequence < jobs_[static_cast<unsigned>(best)].sequence) best = i;
  }
  return best;
}

void translation::accept() {
  if (free_ == 0) return;  // an answer's delivery goes on with it
  std::uint64_t asking = 0;
  for (std::uint64_t rest = asking_; rest != 0; rest &= rest - 1) {
    const unsigned i = static_cast<unsigned>(__builtin_ctzll(rest));
    if (request[i].can_pop()) asking |= std::uint64_t{1} << i;
  }
  if (asking == 0) return;
  const unsigned client = static_cast<unsigned>(arbiter_.pick(asking));
  const unsigned index = static_cast<unsigned>(__builtin_ctzll(free_));
  free_ &= free_ - 1;
  job& j = jobs_[index];
  j.request = request[client].pop();
  RNIC_ASSERT(j.request.length <= 4096, name() + ": a request is at most 4096 bytes");
  j.answer = translate_response{};
  j.answer.tag = j.request.tag;
  j.client = client;
  j.sequence = ++sequence_;
  j.key = j.request.key;
  j.through_window = j.have_mpt = j.pages_known = false;
  j.pages = {};
  j.fetches = 0;
  ++stats_.requests;
  run(index);
}

void translation::run(unsigned index) {
  look_up_.start(1);
  const step s = advance(jobs_[index], index);
  if (s == step::done) complete(index);
  if (s == step::blocked) blocked_ |= std::uint64_t{1} << index;
  if (s == step::again) retry_ |= std::uint64_t{1} << index;
}

translation::step translation::advance(job& j, unsigned index) {
  const translate_request& r = j.request;
  if (!j.pages_known) {
    if (r.length == 0 && (r.what != translate_request::kind::key || r.check_length == 0)) return step::done;
    if (r.what == translate_request::kind::reserved_key) {
      answer_contiguous(j);
      return step::done;
    }
    if (r.what == translate_request::kind::buffer) {
      if (r.log_page < 12 || r.log_page > 51) {
        j.answer.status = translate_status::not_mapped;
        return step::done;
      }
      j.log_page = r.log_page;
      split(j, r.buffer_mtt, r.va);
    } else {
      const step s = check_key(j, index);
      if (s != step::done || !j.pages_known) return s;
    }
  }
  return resolve_pages(j, index);
}

/// done with pages_known unset: the answer is complete. again: in the next cycle, when there is a port, or with the
/// region below the window.
translation::step translation::check_key(job& j, unsigned index) {
  const std::uint32_t slot = slot_of(j.key);
  const mpt_entry* e = &j.mpt;
  if (!j.have_mpt) {
    e = mpts_.find(slot);
    if (e == nullptr) {
      const step s = fetch(true, slot, index);
      if (s == step::done) j.answer.status = translate_status::bad_key;
      return s;
    }
    if (!mpt_reads_.try_access(by_look_up)) return step::again;
    ++stats_.mpt_hits;
  }
  j.have_mpt = false;
  j.answer.status = check_mpt(*e, j.request, j.key, j.through_window);
  if (j.answer.status != translate_status::ok) return step::done;
  if (!e->region()) {
    j.key = e->lkey;
    if (e->zero_based()) j.request.va += e->start;
    j.through_window = true;
    return step::again;
  }
  if (j.request.length == 0) return step::done;
  if (e->physical()) {
    answer_contiguous(j);
    return step::done;
  }
  j.log_page = static_cast<std::uint8_t>(e->log_page);
  const std::uint64_t page_bytes = std::uint64_t{1} << j.log_page;
  split(j, e->mtt_address, j.request.va - e->start + (e->start & (page_bytes - 1)));
  return step::done;
}

void translation::split(job& j, std::uint64_t mtt_address, std::uint64_t offset) {
  const std::uint64_t page_bytes = std::uint64_t{1} << j.log_page;
  const std::uint64_t first = offset & (page_bytes - 1);
  j.pages[0].index = (mtt_address >> 3) + (offset >> j.log_page);
  j.pages[0].offset = first;
  j.answer.count = first + j.request.length > page_bytes ? 2 : 1;
  const std::uint64_t here = std::min<std::uint64_t>(j.request.length, page_bytes - first);
  j.answer.segments[0].length = static_cast<std::uint32_t>(here);
  if (j.answer.count == 2) {
    j.pages[1].index = j.pages[0].index + 1;
    j.answer.segments[1].length = static_cast<std::uint32_t>(j.request.length - here);
  } else {
    j.pages[1].resolved = true;
  }
  j.pages_known = true;
}

/// Looks up what is still missing; the fetches of two lines are under way together. again: the second of two lines that
/// are on chip, in the next cycle, when there is a port.
translation::step translation::resolve_pages(job& j, unsigned index) {
  step result = step::done;
  const mtt_line* read = nullptr;  // in this cycle
  for (unsigned i = 0; i < j.answer.count; ++i) {
    page_part& p = j.pages[i];
    if (p.resolved) continue;
    const std::uint64_t line = p.index >> log_line_;
    if (const mtt_line* l = mtts_.find(line); l != nullptr) {
      if (l != read && !mtt_reads_.try_access(by_look_up)) return step::again;
      read = l;
      p.entry = l->entry[p.index & (config_.mtt_line_entries - 1)];
      p.resolved = true;
      ++stats_.mtt_hits;
      continue;
    }
    const step s = fetch(false, line, index);
    if (s == step::done) {
      p.entry = 0;
      p.resolved = true;
    } else if (s == step::blocked || result == step::done) {
      result = s;  // with one fetch under way and the other refused, the job tries again as soon as it can go out
    }
  }
  if (result == step::done) answer_pages(j);
  return result;
}

/// Addresses are those of the bus, of which there are none behind the last.
void translation::answer_contiguous(job& j) {
  if (j.request.length - 1 > ~j.request.va) {
    j.answer.status = translate_status::out_of_range;
    return;
  }
  j.answer.count = 1;
  j.answer.segments[0] = {j.request.va, j.request.length};
}

void translation::answer_pages(job& j) {
  const std::uint64_t in_page = (std::uint64_t{1} << j.log_page) - 1;
  for (unsigned i = 0; i < j.answer.count; ++i) {
    if ((j.pages[i].entry & 1) == 0) j.answer.status = translate_status::not_mapped;
    j.answer.segments[i].address = (j.pages[i].entry & ~in_page) + j.pages[i].offset;
  }
  if (j.answer.status == translate_status::ok) return;
  j.answer.count = 0;
  j.answer.segments = {};
}

// ---------------------------------------------------------------- operations on keys

std::uint32_t translation::slot_of(std::uint32_t key) const {
  return key_to_index(key) & ((std::uint32_t{1} << map_.layout(table::dmpt).log_entries) - 1);
}

void translation::replace(std::uint32_t slot, const mpt_entry& entry, bool changed) {
  mpt_writes_.access(by_keys);
  mpt_entry* const e = mpts_.find(slot);
  (e != nullptr ? *e : mpts_.insert(slot)) = entry;
  if (!changed) return;
  for (fill& f : fills_)
    if (f.active && f.mpt && f.line == slot) f.stale = true;
}

void translation::forget_mtts(std::uint64_t mtt_address, std::uint64_t entries) {
  const std::uint64_t first = (mtt_address >> 3) >> log_line_;
  const std::uint64_t last = ((mtt_address >> 3) + entries - 1) >> log_line_;
  mtts_.erase(first, last);
  for (fill& f : fills_)
    if (f.active && !f.mpt && f.line >= first && f.line <= last) f.stale = true;
}

bool translation::mtt_address(std::uint64_t mtt_address, std::uint64_t& bus) const {
  const auto address = map_.translate(map_.layout(table::mtt).base + mtt_address);
  if (address) bus = *address;
  return address.has_value();
}

// ---------------------------------------------------------------- registers

void translation::drop_mpt(std::uint32_t index) {
  const std::uint64_t slot = index & ((std::uint32_t{1} << map_.layout(table::dmpt).log_entries) - 1);
  mpts_.erase(slot, slot);
  stale_fills(true, slot, slot);
  keys_.dropped(slot, slot);
}

void translation::drop_mtt(std::uint64_t mtt_address, std::uint64_t entries) {
  if (entries == 0) return;
  const std::uint64_t first = (mtt_address >> 3) >> log_line_;
  const std::uint64_t last = ((mtt_address >> 3) + entries - 1) >> log_line_;
  mtts_.erase(first, last);
  stale_fills(false, first, last);
}

void translation::drop_all() {
  mpts_.erase(0, ~std::uint64_t{0} - 1);
  mtts_.erase(0, ~std::uint64_t{0} - 1);
  stale_fills(true, 0, ~std::uint64_t{0});
  stale_fills(false, 0, ~std::uint64_t{0});
  keys_.dropped(0, ~std::uint64_t{0});
}

void translation::stale_fills(bool mpt, std::uint64_t first, std::uint64_t last) {
  for (fill& f : fills_)
    if (f.active && f.mpt == mpt && f.line >= first && f.line <= last) f.stale = true;
  dropped_at_ = sequence_;
}

bool translation::busy() const {
  if (now() <= answered_at_ || keys_.busy()) return true;
  for (unsigned i = 0; i < jobs_.size(); ++i)
    if ((free_ >> i & 1) == 0 && jobs_[i].sequence <= dropped_at_) return true;
  return false;
}

void translation::announce(sim::statistics& to) const {
  const key_engine::statistics& k = keys_.counters();
  const std::pair<const char*, const std::uint64_t*> named[] = {{"requests", &stats_.requests},
                                                                {"mpt_hits", &stats_.mpt_hits},
                                                                {"mpt_misses", &stats_.mpt_misses},
                                                                {"mtt_hits", &stats_.mtt_hits},
                                                                {"mtt_misses", &stats_.mtt_misses},
                                                                {"merged", &stats_.merged},
                                                                {"refused", &stats_.refused},
                                                                {"stale", &stats_.stale},
                                                                {"keys.invalidations", &k.invalidations},
                                                                {"keys.registrations", &k.registrations},
                                                                {"keys.bindings", &k.bindings},
                                                                {"keys.refused", &k.refused},
                                                                {"keys.revocations", &k.revocations}};
  for (const auto& [n, c] : named) to.add(name() + "." + n, *c);
  mpt_reads_.announce(to);
  mpt_writes_.announce(to);
  mtt_reads_.announce(to);
}

}  // namespace rnic::icm
