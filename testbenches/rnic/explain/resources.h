// SPDX-License-Identifier: Apache-2.0
// The resources of a system, and what gives more of each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rnic::program {

/// A number that gives more of a resource.
struct resource_knob {
  /// A parameter; "--depth": an option of `rnic bandwidth`; "workload.depth": a field of each workload;
  /// "topology.rate_mbps": of every cable of the network, also of trunks and of [[cable]].
  const char* path;
  enum class way : std::uint8_t {
    less,    ///< a cost: less of it
    more,    ///< a count or a rate
    doubled  ///< a power of two
  } how = way::more;
  std::uint64_t most = ~std::uint64_t{0};  ///< the largest value that it may have
};

struct resource {
  const char* name;  ///< as limited_by and the table of use begin, if they name it
  std::vector<resource_knob> knobs;
};

/// Of both adapters, hosts and the wire.
const std::vector<resource>& known_resources();

/// Of a network: what says the rate of a line, "wire, h1 to s1". Empty: the ports' own parameter.
using line_rates = std::function<std::string(const std::string& line)>;
/// Parameters and options of `rnic bandwidth` that give more of what limited_by names, with whether they are to be more
/// or less: "less driver.post_send_ns, less driver.poll_ns". Empty where nothing is known.
std::string what_gives_more(const std::string& limit, const line_rates& rates = {});

/// The value that is nearest to `percent` more (for a cost: less), but not the same; nothing where there is none, as of
/// 0.
std::optional<std::uint64_t> with_more(const resource_knob& knob, std::uint64_t value, double percent);

}  // namespace rnic::program
