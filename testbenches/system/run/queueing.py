# SPDX-License-Identifier: Apache-2.0
"""What queueing theory says of one server with Poisson arrivals and equal service times (M/D/1)."""
from decimal import Decimal, getcontext

getcontext().prec = 120  # terms of the sum alternate, and are large
FACTORIALS = [Decimal(1)]


def factorial(n):
    while len(FACTORIALS) <= n:
        FACTORIALS.append(FACTORIALS[-1] * len(FACTORIALS))
    return FACTORIALS[n]


def waits_at_most(t, load):
    """The part of customers that wait for t service times at most (Erlang 1909)."""
    t, load = Decimal(t), Decimal(load)
    total, k = Decimal(0), 0
    while k <= t:
        x = load * (k - t)
        total += (x ** k if k else Decimal(1)) / factorial(k) * (-x).exp()
        k += 1
    return (1 - load) * total


def wait(part, load):
    """Service times that this part of the customers do not wait for longer."""
    low, high = Decimal(0), Decimal(400)
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if waits_at_most(middle, load) < Decimal(part) else (low, middle)
    return float(high)


def mean_wait(load):
    """Pollaczek and Khinchine."""
    return load / (2 * (1 - load))
