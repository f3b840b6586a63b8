// SPDX-License-Identifier: Apache-2.0
// Networks that come with the program.
#pragma once

#include <array>

namespace rnic::program {

struct network_text {
  const char* name;
  const char* text;
};

inline constexpr std::array<network_text, 5> networks{{
    {"star", R"(# Each of four hosts writes to the next one.
duration_us = 1000

[topology]
kind = "star"
hosts = 4

[[flow]]
from = "h1"
to = "h2"
[[flow]]
from = "h2"
to = "h3"
[[flow]]
from = "h3"
to = "h4"
[[flow]]
from = "h4"
to = "h1"
)"},
    {"incast", R"(# Eight hosts write to one, over a switch with PFC for priority 3.
duration_us = 1000
vlan = 2
priority = 3

[topology]
kind = "star"
hosts = 9
metres = 100

[parameters]
switch.buffer.flow_control = "pfc"
driver.lossless_global_pause = false
driver.pfc_mask = 8

[[flow]]
from = ["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"]
to = "h9"
)"},
    {"dumbbell", R"(# Four flows share a trunk.
duration_us = 1000

[topology]
kind = "dumbbell"
left = 4
right = 4

[parameters]
switch.buffer.flow_control = "pause"

[[flow]]
from = "h1"
to = "h5"
[[flow]]
from = "h2"
to = "h6"
[[flow]]
from = "h3"
to = "h7"
[[flow]]
from = "h4"
to = "h8"
)"},
    {"leaf-spine", R"(# Hosts of each leaf write to those of the next one, over two spines.
duration_us = 500

[topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 2

[parameters]
switch.buffer.flow_control = "pause"

[[flow]]
from = "h1"
to = "h3"
qps = 8
[[flow]]
from = "h2"
to = "h4"
qps = 8
[[flow]]
from = "h3"
to = "h5"
qps = 8
[[flow]]
from = "h4"
to = "h6"
qps = 8
[[flow]]
from = "h5"
to = "h7"
qps = 8
[[flow]]
from = "h6"
to = "h8"
qps = 8
[[flow]]
from = "h7"
to = "h1"
qps = 8
[[flow]]
from = "h8"
to = "h2"
qps = 8
)"},
    {"ring", R"(# Four switches in a ring, all frames one way round: with pauses that can stand still for ever.
duration_us = 2000
vlan = 2
priority = 3

[topology]
kind = "ring"
switches = 4
hosts_per_switch = 2
clockwise = true

[parameters]
switch.buffer.flow_control = "pfc"
switch.buffer.bytes = 400000
driver.lossless_global_pause = false
driver.pfc_mask = 8

[[flow]]
from = ["h1", "h2"]
to = "h5"
[[flow]]
from = ["h3", "h4"]
to = "h7"
[[flow]]
from = ["h5", "h6"]
to = "h1"
[[flow]]
from = ["h7", "h8"]
to = "h3"
)"},
}};

}  // namespace rnic::program
