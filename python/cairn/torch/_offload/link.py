"""Determines the bandwidth and latency of the link between device and host that a search assumes: given by the caller,
or measured on this machine."""

import dataclasses
import time
from typing import Optional

import torch

import cairn
from cairn import _api

from .. import _cache, _private
from . import copies

_SIZES = (1 << 20, 4 << 20, 16 << 20, 64 << 20)  # bytes of the measured copies
# number of copies of each size; the fastest counts, because other work on the machine only makes copies slower
_TIMES = 5
# if two simultaneous copies in opposite directions take more than this many times as long as one copy, they are assumed
# to share the link
_TIGHT = 1.5


@dataclasses.dataclass(frozen=True)
class Offload:
    """The options offload= and host_budget= of backend(): a link, or "measure", and the largest number of bytes on the
    host."""

    link: str
    host_budget: Optional[int] = None

    def given_link(self, device):
        """Returns the link as a text that cairn.solve takes."""
        return measured_link(device) if self.link == "measure" else self.link


def offload_of(offload, host_budget):
    """Checks the arguments of backend(). Returns an Offload, or None if ``offload`` is None. Raises InputError."""
    if offload is None:
        if host_budget is not None:
            raise cairn.InputError("host_budget: it limits what offload= moves to the host; give offload=, too")
        return None
    if isinstance(offload, bool) or not isinstance(offload, (str, int, float)):
        raise cairn.InputError(f"offload: 'pcie4', '25GB/s,10us', bytes per second or 'measure', not {offload!r}")
    link = offload.strip() if isinstance(offload, str) else offload
    if link != "measure":
        try:
            link = _api._link_text(link)
            _checked_graph().with_host_memory(link)
        except cairn.InputError as error:
            raise cairn.InputError(f"offload: {error}") from None
    if isinstance(host_budget, bool):
        raise cairn.InputError(f"host_budget: bytes, or text as '64GiB', not {host_budget!r}")
    return Offload(link, None if host_budget is None else _api._size(host_budget, "host_budget"))


def _checked_graph():
    builder = cairn.GraphBuilder("link")
    builder.add("nothing")
    return builder.build()


def _is_link(text):
    try:
        _checked_graph().with_host_memory(text)
    except (cairn.InputError, TypeError):  # TypeError: text that is no Unicode
        return False
    return text != ""


def measured_link(device):
    """Measures the link of this device by copies of several sizes in both directions. Returns the link as a text such
    as "25000000000B/s,10000ns,duplex", whose numbers are rounded to two significant digits. The link is stored in the
    cache and not measured again, because a slightly different link would lead to another schedule."""
    name = f"link-{_name(device)}.json"
    known = _cache.load(name)
    if isinstance(known, str) and _is_link(known):
        return known
    with _private.no_modes(), _private.compiling_flag(False):
        link = link_text(_measured(device), _shared(device))
    _cache.store(name, link)
    return link


def _name(device):
    named = torch.cuda.get_device_name() if device == "cuda" else device
    return "".join(c if c.isalnum() else "-" for c in named)


def _measured(device):
    """Returns [(bytes, seconds)] for copies of several sizes, each in the slower direction."""
    found = []
    for size in _SIZES:
        value = torch.zeros(size, dtype=torch.uint8, device=device)
        host = copies.host_memory(value.device, size)
        found.append((size, max(_seconds(device, lambda: host.copy_(value, non_blocking=True)),
                                _seconds(device, lambda: value.copy_(host, non_blocking=True)))))
    return found


def _shared(device):
    """Returns whether copies in both directions share the link. On the CPU, one thread runs all copies, so they share
    it."""
    if device != "cuda":
        return True
    size = _SIZES[-1]
    values = [torch.zeros(size, dtype=torch.uint8, device=device) for _ in range(2)]
    hosts = [copies.host_memory(value.device, size) for value in values]
    other = torch.cuda.Stream()

    def both():
        other.wait_stream(torch.cuda.current_stream())
        hosts[0].copy_(values[0], non_blocking=True)
        with torch.cuda.stream(other):
            values[1].copy_(hosts[1], non_blocking=True)
        torch.cuda.current_stream().wait_stream(other)

    return _seconds(device, both) > _TIGHT * _seconds(device, lambda: hosts[0].copy_(values[0], non_blocking=True))


def _seconds(device, call):
    """Returns the seconds of the fastest of _TIMES calls. A first call, which includes setup, does not count."""
    fastest = float("inf")
    for i in range(_TIMES + 1):
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        if i:
            fastest = min(fastest, time.perf_counter() - begin)
    return fastest


def link_text(times, shared):
    """Returns the link that fits the measured times [(bytes, seconds)]. The bandwidth follows from the difference
    between the smallest and the largest copy. The latency is the part of the smallest copy's time that the bandwidth
    does not explain."""
    (small, first), (large, last) = times[0], times[-1]
    rate = (large - small) / (last - first) if last > first else large / max(last, 1e-9)
    latency = max(0.0, first - small / rate)
    return f"{max(1, int(float(f'{rate:.2g}')))}B/s,{int(float(f'{latency * 1e9:.2g}'))}ns,{'half' if shared else 'duplex'}"
