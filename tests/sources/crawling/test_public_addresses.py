"""Which IP addresses are public: by IANA's registries, block by block, in whatever way they are written."""

from __future__ import annotations

import ipaddress
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from siteloom.sources.crawling.public_addresses import is_public

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

# Blocks of the special-purpose registries of 2025-10-09, and of the address spaces that these are a part of.
NOT_REACHABLE = (
    *("0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.170/32", "192.0.0.171/32"),
    *("192.0.2.0/24", "192.88.99.0/24", "192.88.99.2/32", "192.168.0.0/16", "198.18.0.0/15"),
    *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"),
    *("::/128", "::1/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32"),
    *("2001:2::/48", "2001:10::/28", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7"),
    *("fe80::/10", "fec0::/10", "ff00::/8", "::/96", "::ffff:0:0:0/96", "4000::/2", "8000::/1"),
)
REACHABLE = (
    *("192.0.0.9/32", "192.0.0.10/32", "192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24"),
    *("2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:3::/32", "2001:4:112::/48"),
    *("2001:20::/28", "2001:30::/28", "2620:4f:8000::/48"),
)
# What packets to these blocks mean depends on the IPv4 address that the last 32 bits are.
STANDING_FOR_IPV4 = ("::ffff:0:0/96", "64:ff9b::/96")
# Right outside of blocks that are not reachable.
NEIGHBOURS = (
    *("1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"),
    *("128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255"),
    *("192.0.1.0", "192.0.1.255", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255"),
    *("192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255"),
    *("203.0.114.0", "223.255.255.255", "2000::", "2001:200::", "2001:db7:ffff::", "2001:db9::"),
    *("2001:ffff:ffff::", "2003::", "3ffe:ffff::", "3fff:1000::"),
)
NETWORKS = tuple(map(ipaddress.ip_network, (*NOT_REACHABLE, *REACHABLE, *STANDING_FOR_IPV4)))

# Where some version of Python has it otherwise, and why it is as it is here.
OTHERWISE_IN_PYTHON = tuple(
    ipaddress.ip_network(block)
    for block in (
        *("192.0.0.0/24", "64:ff9b:1::/48", "2001::/23", "3fff::/20", "100:0:0:1::/64"),  # newer than some
        *("192.88.99.0/24", "2002::/16", "2001:10::/28"),  # N/A in the registries
        *("224.0.0.0/4", "ff00::/8"),  # many may be reached there, but no server
        *("::/3", "4000::/2", "8000::/1"),  # unassigned
        *STANDING_FOR_IPV4,  # what they stand for counts
    )
)


def innermost(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> IPNetwork | None:
    """The smallest block that an address is in."""
    return max((one for one in NETWORKS if address in one), key=lambda one: one.prefixlen, default=None)


@given(st.sampled_from(NETWORKS), st.floats(0, 1, exclude_max=True))
@example(ipaddress.ip_network("192.0.0.0/24"), 192 / 256)
def test_an_address_is_what_its_block_says(network: IPNetwork, place: float) -> None:
    address = network[int(place * network.num_addresses)]
    block = innermost(address)
    if str(block) not in STANDING_FOR_IPV4:
        assert is_public(str(address)) == (str(block) in REACHABLE), (address, block)


@pytest.mark.parametrize("block", NOT_REACHABLE)
def test_a_block_that_is_not_reachable_is_not_from_end_to_end(block: str) -> None:
    network = ipaddress.ip_network(block)
    assert not is_public(str(network[0]))
    assert not is_public(str(network[-1]))


@pytest.mark.parametrize("block", REACHABLE)
def test_a_block_within_another_may_be_reachable_from_end_to_end(block: str) -> None:
    network = ipaddress.ip_network(block)
    assert is_public(str(network[0]))
    assert is_public(str(network[-1]))


@pytest.mark.parametrize("address", NEIGHBOURS)
def test_what_is_next_to_a_block_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450::1"]
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@given(
    st.ip_addresses(v=4) | st.ip_addresses(v=4, network="192.0.0.0/16"), st.sampled_from(STANDING_FOR_IPV4)
)
@example(ipaddress.IPv4Address("127.0.0.1"), "::ffff:0:0/96")
@example(ipaddress.IPv4Address("192.168.0.1"), "64:ff9b::/96")
@example(ipaddress.IPv4Address("8.8.8.8"), "64:ff9b::/96")
def test_what_stands_for_an_ipv4_address_is_public_if_that_is(
    address: ipaddress.IPv4Address, block: str
) -> None:
    outer = ipaddress.IPv6Network(block)[int(address)]
    assert is_public(str(outer)) == is_public(str(address))


@given(st.ip_addresses(v=6))
@example(ipaddress.IPv6Address("fe80::1"))
@example(ipaddress.IPv6Address("::ffff:10.0.0.1"))
@example(ipaddress.IPv6Address("2606:4700::1111"))
def test_a_zone_changes_nothing(address: ipaddress.IPv6Address) -> None:
    assert is_public(f"{address}%1") == is_public(f"{address}%eth0") == is_public(str(address))


@given(st.ip_addresses() | st.sampled_from(NETWORKS).flatmap(lambda one: st.ip_addresses(network=one)))
def test_python_has_it_otherwise_only_where_we_know_why(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if is_public(str(address)) != address.is_global:
        assert any(address in network for network in OTHERWISE_IN_PYTHON), address


def test_blocks_are_each_told_once() -> None:
    assert all(first != second for first, second in pairwise(sorted(map(str, NETWORKS))))


@pytest.mark.parametrize(
    "text", ["127.1", "0x7f.1", "2130706433", "0177.0.0.1", "localhost", "1.1.1.1.", "[::1]", ""]
)
def test_only_an_address_as_systems_write_it_is_judged(text: str) -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        is_public(text)
