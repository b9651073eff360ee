"""What a graph is. Nothing here knows a file format or a framework."""

from .build import GraphBuilder
from .capture import Capture, Column, Origin, Stage, StageLink, Table, column
from .check import InvalidGraph, verify, verify_capture
from .columns import Int8, Int32, frozen, frozen8
from .enumerations import PHASE_ID, PHASES, ROLE_ID, ROLES
from .gaps import Gap, gaps_of
from .graph import NULL, Body, Graph, Node, Use, Value
from .listings import Listing, add_listings, lines_of
from .pools import Frame, Pools, Scope, Type, scope_label
from .relations import Groups, Links

__all__ = [
    "NULL",
    "PHASES",
    "PHASE_ID",
    "ROLES",
    "ROLE_ID",
    "Body",
    "Capture",
    "Column",
    "Frame",
    "Gap",
    "Graph",
    "GraphBuilder",
    "Groups",
    "Int8",
    "Int32",
    "InvalidGraph",
    "Links",
    "Listing",
    "Node",
    "Origin",
    "Pools",
    "Scope",
    "Stage",
    "StageLink",
    "Table",
    "Type",
    "Use",
    "Value",
    "add_listings",
    "column",
    "frozen",
    "frozen8",
    "gaps_of",
    "lines_of",
    "scope_label",
    "verify",
    "verify_capture",
]
