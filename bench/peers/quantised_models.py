#!/usr/bin/env python3
"""Quantised forms of ONNX models, as ONNX Runtime's quantiser makes them, for op_times.py.

  quantised_models.py FOLDER [NAME...]     of FOLDER/NAME.onnx, of all models there or of the named (random_onnx.py)

Writes NAME_qdq (pairs of QuantizeLinear and DequantizeLinear), NAME_qop (QLinearConv and others, com.microsoft's among
them) and NAME_dyn (weights of bytes, activations quantised in each run), each with the inputs of the model. Ranges are
those of its inputs; weights have a scale for each channel.
"""

import argparse
import pathlib
import shutil

import numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

FORMATS = {"qdq": QuantFormat.QDQ, "qop": QuantFormat.QOperator}


class OneInput(CalibrationDataReader):
    def __init__(self, values):
        self.values = [values]

    def get_next(self):
        return self.values.pop() if self.values else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    quantised = tuple(f"_{form}" for form in (*FORMATS, "dyn"))
    names = options.names or sorted(p.stem for p in options.folder.glob("*.onnx") if not p.stem.endswith(quantised))
    for name in names:
        model, inputs = (options.folder / f"{name}{end}" for end in (".onnx", ".inputs.npz"))
        for form, quant_format in FORMATS.items():
            quantize_static(model, options.folder / f"{name}_{form}.onnx", OneInput(dict(np.load(inputs))),
                            quant_format=quant_format, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                            per_channel=True)
            shutil.copy(inputs, options.folder / f"{name}_{form}.inputs.npz")
        quantize_dynamic(model, options.folder / f"{name}_dyn.onnx", weight_type=QuantType.QInt8)
        shutil.copy(inputs, options.folder / f"{name}_dyn.inputs.npz")


if __name__ == "__main__":
    main()
