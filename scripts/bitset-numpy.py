#!/usr/bin/env python3
"""Images a second of a straightforward, vectorised NumPy simulation of the 18 integer layers of ResNet-20 by bit-planes, with the exact rule R0 on
the odd grid of 8 bits, beside those of `sublane bench bitset`.

    scripts/bitset-numpy.py [--sublane target/release/sublane] [--batch 16] [--rounds 5]

Each plane is one product of matrices in float32, which is exact below 2^24 and runs on all cores through BLAS; partial sums are int32. Needs NumPy.
"""

import argparse
import json
import subprocess
import time

import numpy as np

BITS = 8
# Channels and size of the input, channels of the output, stride; and how often.
LAYERS = [((16, 32, 16, 1), 6), ((16, 32, 32, 2), 1), ((32, 16, 32, 1), 5), ((32, 16, 64, 2), 1), ((64, 8, 64, 1), 5)]


def columns(x, stride):
    """The windows of 3 x 3 of a batch, [windows, taps]."""
    batch, channels, height, width = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::stride, ::stride]
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, channels * 9).astype(np.float32)


def simulate(x, digits, stride):
    """Outputs after the ReLU, and planes run by each; `digits` is [planes, taps, outputs] of -1 and 1."""
    window = columns(x, stride)
    total = window.sum(axis=1, dtype=np.float64).astype(np.int32)[:, None]
    partial = np.zeros((window.shape[0], digits.shape[2]), np.int32)
    alive = np.ones(partial.shape, bool)
    planes = np.zeros(partial.shape, np.uint8)
    for plane in range(BITS):
        rest = BITS - 1 - plane
        partial += (window @ digits[plane]).astype(np.int32) << rest
        planes += alive
        if rest:
            alive &= partial + ((1 << rest) - 1) * total > 0
            if not alive.any():
                break
    return np.where(alive, np.maximum(partial, 0), 0), planes


def layers(batch, random):
    for (channels, size, outputs, stride), count in LAYERS:
        spread = (random.random((channels * 9, outputs, 4)) - 0.5).sum(axis=2) * 160
        q = np.clip(2 * np.floor(spread / 2).astype(np.int32) + 1, 1 - (1 << BITS), (1 << BITS) - 1)
        bits = (q + (1 << BITS) - 1) >> 1
        digits = np.stack([2 * (bits >> (BITS - 1 - plane) & 1) - 1 for plane in range(BITS)]).astype(np.float32)
        x = random.integers(0, 256, (batch, channels, size, size), dtype=np.uint8) * random.integers(0, 2, (batch, channels, size, size), dtype=np.uint8)
        # The planes are the weights.
        weights = sum(digits[plane].astype(np.int32) << (BITS - 1 - plane) for plane in range(BITS))
        assert (weights == q).all()
        # The rule changes no result.
        small, few = x[:1], columns(x[:1], stride).astype(np.int64)
        assert (simulate(small, digits, stride)[0] == np.maximum(few @ q, 0)).all()
        yield x, digits, stride, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sublane", help="binary to measure beside it")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    made = list(layers(options.batch, np.random.default_rng(0)))
    times = []
    for _ in range(options.rounds + 1):
        all_layers = 0.0
        for x, digits, stride, count in made:
            start = time.perf_counter()
            simulate(x, digits, stride)
            all_layers += (time.perf_counter() - start) * count
        times.append(all_layers)
    numpy_rate = options.batch / float(np.median(times[1:]))
    print(f"NumPy {np.__version__}, r0 with pm1: {numpy_rate:.1f} images/s")
    if options.sublane:
        found = json.loads(subprocess.run([options.sublane, "bench", "bitset", "--json", "-q"], check=True, capture_output=True).stdout)
        for row in found["rows"]:
            print(f"{row['name']}: {row['images_per_s']:.1f} images/s, {row['images_per_s'] / numpy_rate:.2f} times NumPy")


if __name__ == "__main__":
    main()
