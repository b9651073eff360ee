"""Names of arguments and attributes that more than one layer knows.

A framework's own attributes pass through under the names they have there. These are opscope's: whoever captures a graph
writes them, and analyses, formulas or the page read them again.
"""

from __future__ import annotations

# -- names of arguments ----------------------------------------------------------------------------

WRITTEN_BEFORE = "written before"
"""A use that is not an argument: a part of the tensor that was written on its own before this operator read the whole.
It keeps the order of the writes in the data flow, and is neither counted as read nor shown to a formula."""

# -- attributes of nodes ---------------------------------------------------------------------------

MASK_SHOWS = "mask_shows"
"""Of attention with a mask whose numbers the recorder saw: how many scores of one head it shows if it is causal, 0 if
it is another mask. Absent: the mask was not seen."""

INSIDE = "inside_of"
"""The operator that this one is a part of, where a tensor class (a DTensor) answers an operator by running others: its
name, and the tensors with their placements."""

GROUP = "rank_group"
"""Of an operator that lets ranks communicate, who they are: `{"dimension": "tp", "size": 8, "index": 3, "ranks":
"0-7"}`. `dimension` is what the program calls the group, `size` how many ranks it has, `index` the place of the
recorded rank among them, `ranks` all of them in order, as `ranks_text` writes them."""

NESTED = "nested_sizes"
"""Of an operator with nested tensors, the sizes of their parts: `{"arguments": {name: [[2, 8], [5, 8]]}, "results":
{slot: …}}`. The type of a nested tensor has one shape, that of all its numbers packed."""

SPARSE = "sparse_entries"
"""Of an operator with sparse tensors, how many numbers each stores when it runs: `{"arguments": {name: entries},
"results": {slot: entries}}`; null where it is not known."""

ROWS = "rows_in_groups"
"""Of a product in groups whose ends the recorder saw: how many rows (or columns) are in any group at all."""

MODULE = "module"
"""Of a module that is kept whole as one operator: its `repr`, such as `MaxPool2d(kernel_size=3, stride=2)`."""

MODULE_GUESSED = "module is guessed"
"""Of an operator whose module its source does not say, nor what it reads: what the guess is from. The module is the one
that is named, or one inside of it."""

NOT_KNOWN = "not known"
"""Of an operator that is recorded without something that belongs to it: what that is."""

FAILED = "failed"
"""Of an operator that raised an exception, which ended the recording: its type and text."""

STARTS_FROM = "starts_from"
"""Of a backward operator: dtype and shape of each gradient that backward() itself hands it, which nothing made."""

NO_GRADIENT = "no_gradient"
"""Of a backward operator: the places of the gradients that it does not compute."""

UNPAIRED = "unpaired"
"""Of a backward operator that has no forward operator: why, as the end of a sentence."""

WITHOUT_RECORDER = "without a recorder"
"""Of an operator that runs only because a recorder does: what PyTorch runs instead without one."""

COPIES_FOR = "copies for"
"""Of a kernel that computes no operator: the one for which it lays a tensor out in another way."""

RECOMPUTE_POLICY = "recompute policy"
"""What activation checkpointing says of an operator: `prefer recompute (checkpoint 4)`, `must save`."""

RECOMPUTED_BECAUSE = "recomputed because"
"""Of an operator that backward runs once more: who decided that."""

EXPORTED_FROM = "exported from"
"""Of an operator of an exported model: the name and the operator in the program that it was made from, as in
`relu = aten.relu`."""
