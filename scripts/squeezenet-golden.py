#!/usr/bin/env python3
"""Makes tests/reference/squeezenet.json: what onnxruntime computes for SqueezeNet on one input that is easy to make again.

Usage: squeezenet-golden.py MODEL.onnx >tests/reference/squeezenet.json (needs onnxruntime and numpy from PyPI).

The input is x[i] = 17 * sin(0.001 * i) + i mod 101 - 50 over the flat index i, computed in float64 and rounded.
"""

import json
import sys

import numpy
import onnxruntime

SHAPE = (1, 3, 227, 227)


def main():
    session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    index = numpy.arange(numpy.prod(SHAPE), dtype=numpy.float64)
    values = 17 * numpy.sin(0.001 * index) + index % 101 - 50
    (output,) = session.run(None, {session.get_inputs()[0].name: values.astype(numpy.float32).reshape(SHAPE)})
    output = output.astype(numpy.float64).ravel()
    kept = {
        "runtime": f"onnxruntime {onnxruntime.__version__}",
        "best": int(output.argmax()),
        "scores": [float(v) for v in output],
    }
    json.dump(kept, sys.stdout)
    print()


if __name__ == "__main__":
    main()
