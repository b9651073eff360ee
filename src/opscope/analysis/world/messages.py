"""What a rank sends to single others and gets from them, and which collectives it takes part in, each by its number.

Messages of one dimension of a mesh that go equally far are counted: the third that a rank sends to its right is the
third that the rank there gets from its left.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from opscope.analysis.costs.communication import peers_of
from opscope.ir import Graph
from opscope.ir.ranks import ranks_of

_PEER = {"send": "dst", "isend": "dst", "recv_": "src", "irecv": "src"}

Way = tuple[str, int, int]  # dimension, how far away, the how many-th


class Messages(NamedTuple):
    sent: dict[Way, tuple[int, int]]  # node, and the rank it goes to
    received: dict[Way, tuple[int, int]]
    together: dict[tuple[str, int], int]  # collectives: dimension and the how many-th -> node


def messages_of(graph: Graph) -> Messages:
    found = Messages({}, {}, {})
    counts: Counter[tuple[str, str, int]] = Counter()
    for node, peers in peers_of(graph):
        handle = graph.node(node)
        word = handle.op.rpartition(".")[2]
        place = handle.attrs.get(_PEER.get(word, ""))
        if not isinstance(place, int):
            if "send" not in word and "recv" not in word:
                counts["", peers.dimension, 0] += 1
                found.together[peers.dimension, counts["", peers.dimension, 0]] = node
            continue
        is_sent = _PEER[word] == "dst"
        away = (place - peers.index if is_sent else peers.index - place) % max(peers.size, 1)
        counts[_PEER[word], peers.dimension, away] += 1
        way = peers.dimension, away, counts[_PEER[word], peers.dimension, away]
        try:
            other = ranks_of(peers.ranks)[place]
        except (ValueError, IndexError):
            continue
        (found.sent if is_sent else found.received)[way] = node, other
    return found
