// SPDX-License-Identifier: Apache-2.0
#include "testbenches/rnic/report/trace_counters.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace rnic::program {

namespace {

/// A curve has no more points than a screen shows of it.
constexpr std::size_t most_points = 4096, most_pauses = 4096;
constexpr std::size_t longest_event = 1u << 20;

/// Finds the events of a trace, however its lines are broken: objects that are elements of a list.
class event_scanner {
 public:
  explicit event_scanner(std::function<void(const std::string&)> found) : found_(std::move(found)) {}

  void read(std::string_view piece) {
    for (const char c : piece) {
      if (depth_ != 0 && event_.size() < longest_event) event_ += c;
      if (in_text_) {
        in_text_ = escaped_ || c != '"';
        escaped_ = !escaped_ && c == '\\';
      } else if (c == '"') {
        in_text_ = true;
      } else if (c == '{' || c == '[') {
        open(c);
      } else if (c == '}' || c == ']') {
        close();
      }
    }
  }

 private:
  void open(char c) {
    if (depth_ != 0) {
      ++depth_;
    } else if (c == '{' && !around_.empty() && around_.back() == '[') {
      event_ = "{";
      depth_ = 1;
    } else {
      around_ += c;
    }
  }

  void close() {
    if (depth_ == 0) {
      if (!around_.empty()) around_.pop_back();
    } else if (--depth_ == 0) {
      found_(event_);
    }
  }

  std::function<void(const std::string&)> found_;
  std::string around_, event_;
  unsigned depth_ = 0;
  bool in_text_ = false, escaped_ = false;
};

struct point {
  double at_us = 0, value = 0;
};

/// Of each four neighbours the lowest and the highest stay, in their order; and both ends of the curve.
std::vector<point> thinned(const std::vector<point>& all) {
  std::vector<point> kept{all.front()};
  for (std::size_t i = 1; i + 1 < all.size(); i += 4) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = all.begin() + static_cast<std::ptrdiff_t>(std::min(i + 4, all.size() - 1));
    auto [low, high] =
        std::minmax_element(first, last, [](const point& a, const point& b) { return a.value < b.value; });
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (high != low) kept.push_back(*high);
  }
  kept.push_back(all.back());
  return kept;
}

class buffer_curve {
 public:
  void add(point p) {
    ++changes_;
    most_ = std::max(most_, p.value);
    points_.push_back(p);
    if (points_.size() > 4 * most_points) points_ = thinned(points_);
  }

  nlohmann::json json() const {
    std::vector<point> some = points_;
    while (some.size() > most_points) some = thinned(some);
    nlohmann::json j = {{"changes", changes_}, {"most", most_}, {"points", nlohmann::json::array()}};
    for (const point& p : some) j["points"].push_back({p.at_us, p.value});
    return j;
  }

 private:
  std::vector<point> points_;
  std::uint64_t changes_ = 0;
  double most_ = 0;
};

class pause_times {
 public:
  void add(point p) {
    if (p.value != 0 && !paused_) since_ = p.at_us;
    if (p.value == 0 && paused_) end(p.at_us);
    paused_ = p.value != 0;
  }

  nlohmann::json json(double until_us) {
    if (std::exchange(paused_, false)) end(until_us);
    while (times_.size() > most_pauses) close_gaps();
    nlohmann::json j = {{"number", number_}, {"total_us", total_us_}, {"times", nlohmann::json::array()}};
    for (const auto& [from, to] : times_) j["times"].push_back({from, to});
    return j;
  }

 private:
  void end(double at_us) {
    ++number_;
    total_us_ += at_us - since_;
    times_.emplace_back(since_, at_us);
    if (times_.size() > 4 * most_pauses) close_gaps();
  }

  /// The shorter half of all gaps.
  void close_gaps() {
    std::vector<double> gaps;
    for (std::size_t i = 1; i < times_.size(); ++i) gaps.push_back(times_[i].first - times_[i - 1].second);
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::nth_element(gaps.begin(), middle, gaps.end());
    const double longest = *middle;
    std::vector<std::pair<double, double>> kept{times_.front()};
    for (std::size_t i = 1; i < times_.size(); ++i) {
      if (times_[i].first - kept.back().second <= longest)
        kept.back().second = times_[i].second;
      else
        kept.push_back(times_[i]);
    }
    times_ = std::move(kept);
  }

  std::vector<std::pair<double, double>> times_;
  double since_ = 0, total_us_ = 0;
  std::uint64_t number_ = 0;
  bool paused_ = false;
};

class trace_reader {
 public:
  void event(const std::string& text) {
    ++events_;
    // Most events are stages of messages, which this page does not show: only the others are worth their parsing.
    if (text.find("\"C\"") == std::string::npos && text.find("\"M\"") == std::string::npos) return;
    const nlohmann::json e = nlohmann::json::parse(text, nullptr, false);
    if (!e.is_object() || !e.contains("ph") || !e.contains("name") || !e["name"].is_string()) return;
    const std::string process = e.contains("pid") ? e["pid"].dump() : "";
    const auto args = e.find("args");
    if (args == e.end() || !args->is_object()) return;
    if (e["ph"] == "M" && e["name"] == "process_name" && args->contains("name") && (*args)["name"].is_string())
      processes_[process] = (*args)["name"].get<std::string>();
    if (e["ph"] == "C" && e.contains("ts") && e["ts"].is_number())
      for (const auto& [key, value] : args->items())
        if (value.is_number())
          counter(process, e["name"].get<std::string>() + (key == "value" ? "" : " " + key),
                  {e["ts"].get<double>(), value.get<double>()});
  }

  nlohmann::json json() {
    nlohmann::json j = {{"command", "trace"},
                        {"events", events_},
                        {"from_us", seen_ ? from_us_ : 0},
                        {"to_us", to_us_},
                        {"buffers", nlohmann::json::array()},
                        {"pauses", nlohmann::json::array()}};
    const auto named = [this](const name& n, nlohmann::json of) {
      const auto known = processes_.find(n.first);
      of["process"] = known == processes_.end() ? n.first : known->second;
      of["name"] = n.second;
      return of;
    };
    for (const auto& [n, curve] : curves_) j["buffers"].push_back(named(n, curve.json()));
    for (auto& [n, times] : pauses_) j["pauses"].push_back(named(n, times.json(to_us_)));
    return j;
  }

 private:
  using name = std::pair<std::string, std::string>;  // process, counter

  static bool ends_with_bytes(const std::string& text) {
    constexpr std::string_view ending = "bytes";
    return text.size() >= ending.size() && text.compare(text.size() - ending.size(), ending.size(), ending) == 0;
  }

  void counter(const std::string& process, const std::string& what, point p) {
    from_us_ = seen_ ? std::min(from_us_, p.at_us) : p.at_us;
    seen_ = true;
    to_us_ = std::max(to_us_, p.at_us);
    if (what.find("paused") != std::string::npos)
      pauses_[{process, what}].add(p);
    else if (ends_with_bytes(what))
      curves_[{process, what}].add(p);
  }

  std::map<std::string, std::string> processes_;
  std::map<name, buffer_curve> curves_;
  std::map<name, pause_times> pauses_;
  std::uint64_t events_ = 0;
  double from_us_ = 0, to_us_ = 0;
  bool seen_ = false;
};

}  // namespace

bool is_trace(packed_file& file) {
  file.rewind();
  const std::string_view begin = file.next();
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  const bool is = first != std::string_view::npos &&
                  (begin[first] == '[' || begin.find("\"traceEvents\"") != std::string_view::npos) &&
                  begin.find("\"ph\"") != std::string_view::npos;
  file.rewind();
  return is;
}

nlohmann::json counters_of_trace(packed_file& file) {
  trace_reader reader;
  event_scanner scanner([&reader](const std::string& text) { reader.event(text); });
  for (std::string_view piece = file.next(); !piece.empty(); piece = file.next()) scanner.read(piece);
  return reader.json();
}

}  // namespace rnic::program
