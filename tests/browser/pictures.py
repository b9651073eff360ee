# ruff: noqa: E501 (the scripts that run in the page are kept in one piece)
"""Stored pictures of the page, compared so that a letter's shape does not matter but a missing panel does.

Both are brought to 480 × 300, as stored, then to 160 × 100, and compared in blocks of 8 × 10. Another font or another
Chromium moves a few pixels of text inside a block; a theme, a panel or a box that is not there changes blocks, or
leaves blocks empty that had something in them. The browser itself reads the PNGs, so that no other package is needed.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

PICTURES = Path(__file__).parent / "pictures"
STORED = (480, 300)  # large enough to be looked at in review
# What another font stays below and damage does not (test_pictures.py shows both). Of 255: all blocks together, and the
# worst of them; then how many of the 200 blocks have something in one picture and nothing in the other.
MEAN, BLOCK, LOST = 2.5, 21.0, 4

COMPARE = """async ([one, two]) => {
    const W = 160, H = 100, BW = 8, BH = 10, columns = W / BW, count = columns * H / BH;
    const read = async (data) => {
        const image = await createImageBitmap(await (await fetch('data:image/png;base64,' + data)).blob(), { resizeWidth: W, resizeHeight: H, resizeQuality: 'high' });
        const pen = new OffscreenCanvas(W, H).getContext('2d');
        pen.drawImage(image, 0, 0);
        return pen.getImageData(0, 0, W, H).data;
    };
    const [a, b] = [await read(one), await read(two)];
    const sums = Array.from({ length: 5 }, () => new Float64Array(count)); // apart, then sum and squares of each picture
    for (let y = 0; y < H; y++) for (let x = 0; x < W; x++) {
        const i = 4 * (y * W + x), block = Math.floor(y / BH) * columns + Math.floor(x / BW);
        const grey = (d) => (d[i] + d[i + 1] + d[i + 2]) / 3;
        const parts = [(Math.abs(a[i] - b[i]) + Math.abs(a[i + 1] - b[i + 1]) + Math.abs(a[i + 2] - b[i + 2])) / 3, grey(a), grey(a) ** 2, grey(b), grey(b) ** 2];
        parts.forEach((v, k) => { sums[k][block] += v / (BW * BH); });
    }
    const [blocks, meanA, squareA, meanB, squareB] = sums;
    const ink = (mean, square, k) => Math.sqrt(Math.max(0, square[k] - mean[k] ** 2));
    let lost = 0;
    for (let k = 0; k < count; k++) {
        const [p, q] = [ink(meanA, squareA, k), ink(meanB, squareB, k)].sort((x, y) => x - y);
        if (p < 1.5 && q > 5) lost++;
    }
    const worst = blocks.indexOf(Math.max(...blocks));
    return { mean: blocks.reduce((s, v) => s + v, 0) / count, worst: blocks[worst], lost, x: (worst % columns) / columns, y: Math.floor(worst / columns) * BH / H };
}"""

SHRINK = """async ([data, width, height]) => {
    const image = await createImageBitmap(await (await fetch('data:image/png;base64,' + data)).blob(), { resizeWidth: width, resizeHeight: height, resizeQuality: 'high' });
    const canvas = new OffscreenCanvas(width, height);
    canvas.getContext('2d').drawImage(image, 0, 0);
    const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/png' })).arrayBuffer());
    let text = ''; for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text);
}"""


@dataclass(frozen=True)
class Difference:
    mean: float
    worst: float
    lost: int
    x: float  # of the worst block, as a part of the width and of the height
    y: float

    @property
    def small(self) -> bool:
        return self.mean <= MEAN and self.worst <= BLOCK and self.lost <= LOST

    def __str__(self) -> str:
        where = f"{self.x:.0%} across and {self.y:.0%} down"
        return f"{self.mean:.1f} of 255 apart, {self.worst:.0f} at {where}; {self.lost} blocks lost or new"


class Album:
    """Compares in a page of its own: the page under test is only photographed."""

    def __init__(self, reader: Page, overwrite: bool) -> None:
        self.reader = reader
        self.overwrite = overwrite

    def apart(self, one: bytes, two: bytes) -> Difference:
        """Two small pictures."""
        return Difference(**self.reader.evaluate(COMPARE, [base64.b64encode(png).decode() for png in (one, two)]))

    def small(self, shot: bytes) -> bytes:
        return base64.b64decode(self.reader.evaluate(SHRINK, [base64.b64encode(shot).decode(), *STORED]))

    def stored(self, name: str) -> bytes:
        return (PICTURES / f"{name}.png").read_bytes()

    def compare(self, name: str, shot: bytes) -> Difference:
        """A screenshot with a stored picture."""
        return self.apart(self.small(shot), self.stored(name))

    def check(self, name: str, shot: bytes) -> None:
        if self.overwrite:
            path = PICTURES / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.small(shot))
        apart = self.compare(name, shot)
        assert apart.small, f"{name}.png changed: {apart}. pytest tests/browser --overwrite, and look at it"
