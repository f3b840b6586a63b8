// SPDX-License-Identifier: Apache-2.0
#include "testbenches/bench/wave/network_wave.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <functional>
#include <set>
#include <systemc>
#include <type_traits>

#include "model/sim/use.h"
#include "testbenches/bench/usage_error.h"
#include "testbenches/bench/wave/wave_names.h"

namespace rnic::bench {

namespace {

/// All of a kind below `objects`, in order of construction.
template <class T>
void find_all(const std::vector<sc_core::sc_object*>& objects, std::vector<T*>& found) {
  for (sc_core::sc_object* o : objects) {
    if (auto* t = dynamic_cast<T*>(o)) found.push_back(t);
    find_all(o->get_child_objects(), found);
  }
}
template <class T>
std::vector<T*> all_of() {
  std::vector<T*> found;
  find_all(sc_core::sc_get_top_level_objects(), found);
  return found;
}

/// Tells both ends of a channel, and nothing else.
class ends_of final : public sim::channel_reader_if {
 public:
  explicit ends_of(const sim::channel& of) : names{of.name()} { of.describe(*this); }
  std::vector<std::string> names;  ///< the channel's, and those of both blocks

 private:
  void ends(const sim::clocked_block* producer, const sim::clocked_block* consumer) override {
    for (const sim::clocked_block* b : {producer, consumer})
      if (b != nullptr) names.push_back(b->name());
  }
  void field(const char*, const char*, unsigned, std::uint64_t) override {}
};

sim::time_ps sum_of(sim::time_ps a, sim::time_ps b) { return b > ~sim::time_ps{0} - a ? ~sim::time_ps{0} : a + b; }

}  // namespace

network_wave::network_wave(const watched_system& system, const wave_config& config) : system_(system), config_(config) {
  choose();
  make_file();
}

network_wave::~network_wave() {
  try {
    if (changes_) finish();
  } catch (const std::exception&) {  // the run has ended for another reason, which is told
  }
}

void network_wave::choose() {
  std::vector<hosts::rtl_block> blocks;
  for (const watched_system::host& h : system_.hosts) blocks.insert(blocks.end(), h.rtl->begin(), h.rtl->end());
  std::vector<std::string> patterns = config_.of;
  if (patterns.empty())
    for (std::size_t h = 0; h < std::min<std::size_t>(2, system_.hosts.size()); ++h)
      patterns.push_back(system_.hosts[h].name);
  std::vector<bool> matched(patterns.size());
  std::set<std::string> known;
  const auto is_chosen = [&](const std::vector<std::string>& names) {
    known.insert(names.begin(), names.end());
    bool chosen = false;
    for (std::size_t i = 0; i < patterns.size(); ++i)
      for (const std::string& n : names)
        if (is_name_in(patterns[i], n)) chosen = matched[i] = true;
    return chosen;
  };
  for (sim::channel* c : all_of<sim::channel>())
    if (is_chosen(ends_of(*c).names)) chosen_.push_back(c);
  const auto choose_parts = [&](auto& to) {
    for (auto* part : all_of<std::remove_pointer_t<typename std::decay_t<decltype(to)>::value_type>>())
      if (is_chosen({part->name(), part->owner().name()})) to.push_back(part);
  };
  choose_parts(memories_);
  choose_parts(engines_);
  choose_parts(pipelines_);
  for (const hosts::rtl_block& b : blocks)
    if (is_chosen({b.name})) rtl_.push_back(b);
  for (std::size_t i = 0; i < patterns.size(); ++i)
    if (!matched[i]) throw usage_error("--wave-of: " + no_such_name(patterns[i], known));
}

network_wave::domain& network_wave::domain_of(sim::clock_domain& clock) {
  const auto is_it = [&clock](const auto& d) { return &d->shown.clock() == &clock; };
  const auto found = std::find_if(domains_.begin(), domains_.end(), is_it);
  if (found != domains_.end()) return **found;
  domains_.push_back(std::make_unique<domain>(*this, clock));
  return *domains_.back();
}

void network_wave::make_file() {
  file_ = std::make_unique<wave_file>(config_.file);
  add_channels();
  add_parts(memory_waves_, memories_);
  add_parts(engine_waves_, engines_);
  add_parts(pipeline_waves_, pipelines_);
}

template <class Wave, class Part>
void network_wave::add_parts(std::vector<std::unique_ptr<Wave>>& to, const std::vector<Part*>& chosen) {
  for (Part* p : chosen) {
    to.push_back(std::make_unique<Wave>(*file_, *p));
    domain& d = domain_of(p->owner().domain());
    to.back()->clock_by(d.shown);
    take(d, *to.back());
  }
}

void network_wave::add_channels() {
  for (sim::channel* c : chosen_) {
    channels_.push_back(std::make_unique<channel_wave>(*file_, *c));
    channel_wave& w = *channels_.back();
    domain& from = domain_of(w.producer() != nullptr ? w.producer()->domain() : c->domain());
    domain& to = domain_of(w.consumer() != nullptr ? w.consumer()->domain() : c->domain());
    w.clock_by(from.shown, to.shown);
    from.channels.push_back(&w);
    if (&to != &from) to.channels.push_back(&w);
  }
}

void network_wave::domain::served(sim::clock_domain& clock) {
  const sim::time_ps now = clock.now_ps();
  if (now >= of.until_) return clock.watch(nullptr);
  shown.show(clock.now());
  for (channel_wave* c : channels) c->look();
  for (memory_wave* m : memories) m->look();
  for (pipeline_wave* p : pipelines) p->look();
  if (now <= of.latest_) return;
  of.latest_ = now;
  // Another host, or a switch, may be simulated later that is earlier by so much.
  if (now > of.system_.ahead) of.changes_->write_before(now - of.system_.ahead);
}

void network_wave::begin() {
  origin_ = latest_ = system_.now_ps();
  from_ = sum_of(origin_, config_.from);
  until_ = sum_of(origin_, config_.until);
  changes_ = std::make_unique<wave_changes>(*file_, origin_, from_, until_);
  for (const auto& d : domains_) d->shown.begin(*changes_);
  for (const auto& c : channels_) c->begin();
  for (const auto& m : memory_waves_) m->begin();
  for (const auto& e : engine_waves_) e->begin();
  for (const auto& p : pipeline_waves_) p->begin();
  used_before_ = use();
  for (const auto& d : domains_) d->shown.clock().watch(d.get());
  trace_rtl();
}

void network_wave::trace_rtl() {
  for (const hosts::rtl_block& b : rtl_) {
    const std::string part = part_name(parts_.size() + 1);
    // A look-up takes its cycles one after the other from the one on in which it is asked for.
    const auto times = [clock = b.clock, origin = origin_, next = sim::cycle_t{0}]() mutable {
      const sim::cycle_t cycle = std::max(clock->now(), next);
      next = cycle + 1;
      const sim::time_ps begin = clock->edge_time(cycle) - origin, end = clock->edge_time(next) - origin;
      return rtl::cycle_times{begin, begin + (end - begin) / 2, end};
    };
    if (b.waveform->start_trace(part, times)) parts_.push_back({part, b.name});
  }
}

wave_counts network_wave::finish() {
  const std::unique_ptr<wave_changes> changes = std::move(changes_);
  for (const auto& d : domains_) d->shown.clock().watch(nullptr);
  for (const auto& e : engine_waves_) e->end();
  const sim::time_ps end = std::min(until_, std::max({from_, latest_, system_.now_ps()}));
  changes->finish();
  counts_.channels = channels_.size();
  counts_.memories = memory_waves_.size();
  counts_.engines = engine_waves_.size();
  counts_.pipelines = pipeline_waves_.size();
  for (const auto& [name, value] : use())
    if (const std::uint64_t more = value - used_before_[name]; more != 0) counts_.use[name] = more;
  counts_.clocks = domains_.size();
  counts_.rtl_blocks = parts_.size();
  counts_.signals = file_->paths();
  counts_.changes = file_->changes();
  file_->close(end - origin_);
  if (!parts_.empty()) write_rtl();
  return counts_;
}

std::map<std::string, std::uint64_t> network_wave::use() const {
  std::set<std::string> shown;
  for (const auto& c : channels_) shown.insert(c->of().name());
  for (const auto& m : memory_waves_) shown.insert(m->of().name());
  for (const auto& e : engine_waves_) shown.insert(e->of().name());
  std::map<std::string, std::uint64_t> all;
  for (const auto& d : domains_)
    sim::for_each_use(d->shown.clock(), [&](const std::string& name, std::uint64_t value) {
      for (std::size_t dot = name.rfind('.'); dot != std::string::npos && dot != 0; dot = name.rfind('.', dot - 1))
        if (shown.count(name.substr(0, dot)) != 0) all[name] = value;
    });
  for (const sim::pipeline* p : pipelines_) all[p->name() + ".entered"] = p->entered();
  return all;
}

void network_wave::write_rtl() {
  std::vector<wave_part> all{{part_name(0), ""}};
  for (const hosts::rtl_block& b : rtl_) b.waveform->stop_trace();
  std::filesystem::rename(config_.file, all.front().file);
  all.insert(all.end(), parts_.begin(), parts_.end());
  wave_file whole(config_.file);
  merge(all, whole, from_ - origin_, until_ == ~sim::time_ps{0} ? until_ : until_ - origin_);
  counts_.signals = whole.paths();
  counts_.changes = whole.changes();
  whole.close(0);
  for (const wave_part& p : all) std::filesystem::remove(p.file);
}

}  // namespace rnic::bench
