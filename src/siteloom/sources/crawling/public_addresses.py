"""Which IP addresses anybody on the internet can reach, as IANA's registries say.

What `ipaddress` of Python says differs from one version to the next, and from the registries.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

_REACHABLE = {
    # IANA IPv4 Special-Purpose Address Registry, last updated on 2025-10-09: each block, and whether it is
    # globally reachable. "N/A" stands there for what is deprecated or cannot be told, and is False here.
    # https://www.iana.org/assignments/iana-ipv4-special-registry/
    "0.0.0.0/8": False,  # "This network"
    "0.0.0.0/32": False,  # "This host on this network"
    "10.0.0.0/8": False,  # Private-Use
    "100.64.0.0/10": False,  # Shared Address Space
    "127.0.0.0/8": False,  # Loopback
    "169.254.0.0/16": False,  # Link Local
    "172.16.0.0/12": False,  # Private-Use
    "192.0.0.0/24": False,  # IETF Protocol Assignments
    "192.0.0.0/29": False,  # IPv4 Service Continuity Prefix
    "192.0.0.8/32": False,  # IPv4 dummy address
    "192.0.0.9/32": True,  # Port Control Protocol Anycast
    "192.0.0.10/32": True,  # Traversal Using Relays around NAT Anycast
    "192.0.0.170/32": False,  # NAT64/DNS64 Discovery
    "192.0.0.171/32": False,  # NAT64/DNS64 Discovery
    "192.0.2.0/24": False,  # Documentation (TEST-NET-1)
    "192.31.196.0/24": True,  # AS112-v4
    "192.52.193.0/24": True,  # AMT
    "192.88.99.0/24": False,  # Deprecated (6to4 Relay Anycast): N/A
    "192.88.99.2/32": False,  # 6a44-relay anycast address
    "192.168.0.0/16": False,  # Private-Use
    "192.175.48.0/24": True,  # Direct Delegation AS112 Service
    "198.18.0.0/15": False,  # Benchmarking
    "198.51.100.0/24": False,  # Documentation (TEST-NET-2)
    "203.0.113.0/24": False,  # Documentation (TEST-NET-3)
    "240.0.0.0/4": False,  # Reserved
    "255.255.255.255/32": False,  # Limited Broadcast
    # IANA IPv4 Multicast Address Space Registry; what none of these blocks holds is unicast.
    "224.0.0.0/4": False,
    "0.0.0.0/0": True,
    # IANA IPv6 Special-Purpose Address Registry, last updated on 2025-10-09.
    # https://www.iana.org/assignments/iana-ipv6-special-registry/
    "::1/128": False,  # Loopback Address
    "::/128": False,  # Unspecified Address
    "::ffff:0:0/96": False,  # IPv4-mapped Address
    "64:ff9b::/96": True,  # IPv4-IPv6 Translat.
    "64:ff9b:1::/48": False,  # IPv4-IPv6 Translat.
    "100::/64": False,  # Discard-Only Address Block
    "100:0:0:1::/64": False,  # Dummy IPv6 Prefix
    "2001::/23": False,  # IETF Protocol Assignments
    "2001::/32": False,  # TEREDO: N/A
    "2001:1::1/128": True,  # Port Control Protocol Anycast
    "2001:1::2/128": True,  # Traversal Using Relays around NAT Anycast
    "2001:1::3/128": True,  # DNS-SD Service Registration Protocol Anycast
    "2001:2::/48": False,  # Benchmarking
    "2001:3::/32": True,  # AMT
    "2001:4:112::/48": True,  # AS112-v6
    "2001:10::/28": False,  # Deprecated (previously ORCHID): N/A
    "2001:20::/28": True,  # ORCHIDv2
    "2001:30::/28": True,  # Drone Remote ID Protocol Entity Tags (DETs) Prefix
    "2001:db8::/32": False,  # Documentation
    "2002::/16": False,  # 6to4: N/A
    "2620:4f:8000::/48": True,  # Direct Delegation AS112 Service
    "3fff::/20": False,  # Documentation
    "5f00::/16": False,  # Segment Routing (SRv6) SIDs
    "fc00::/7": False,  # Unique-Local
    "fe80::/10": False,  # Link-Local Unicast
    # IANA Internet Protocol Version 6 Address Space: only this is global unicast. The rest is reserved or
    # multicast, or was for sites (fec0::/10).
    "2000::/3": True,
    "::/0": False,
}

# The most specific network first.
_NETWORKS = sorted(
    ((ip_network(block), is_reachable) for block, is_reachable in _REACHABLE.items()),
    key=lambda row: -row[0].prefixlen,
)

# Packets to these go to the IPv4 address in the last 32 bits: by this machine (RFC 4291), or by a translator
# of a network without IPv4 (RFC 6052).
_STAND_FOR_IPV4 = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))


def is_public(address: str) -> bool:
    """Return whether an IP address can be reached from anywhere on the internet.

    Private, loopback, link-local, multicast and reserved addresses cannot, nor can IPv6 addresses that stand
    for such an IPv4 address, nor those of tunnels that may end at one (6to4, Teredo).
    """
    ip = ip_address(address)
    if isinstance(ip, IPv6Address) and any(ip in network for network in _STAND_FOR_IPV4):
        ip = IPv4Address(int(ip) & 0xFFFF_FFFF)
    return next(is_reachable for network, is_reachable in _NETWORKS if ip in network)
