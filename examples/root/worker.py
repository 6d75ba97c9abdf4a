#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker in Python: fills a tree and a histogram, and hands them over every 1000 entries.

    wherry-merge 'wherry://*:1095' -o out.root
    wherry run -- python3 worker.py wherry://0:1095//out.root 7 5000

The arguments are URL, SEED and ENTRIES.
"""

import sys

import numpy
import ROOT

url, seed, entries = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ROOT.gROOT.SetBatch()
random = numpy.random.default_rng(seed)

file = ROOT.TFile.Open(url, "RECREATE")  # raises OSError where nobody listens
if file.ClassName() != "TScifFile":
    sys.exit(f"{file.GetName()} is a local file: start this program with `wherry run --`")

# A tree reads its branches from where they were: so they are written in place, never assigned.
who, number, values = numpy.full(1, seed, "i4"), numpy.zeros(1, "i4"), numpy.zeros(3)
tree = ROOT.TTree("samples", "three numbers")
tree.Branch("seed", who, "seed/I")
tree.Branch("number", number, "number/I")
tree.Branch("values", values, "values[3]/D")
first = ROOT.TH1D("first", "the first of them", 100, -5, 5)

for number[0] in range(entries):
    values[:] = random.normal(size=3)
    tree.Fill()
    first.Fill(values[0])
    if (number[0] + 1) % 1000 == 0 and file.Write() < 0:
        sys.exit(1)  # ROOT has said why.

file.Write()
file.Close()  # waits until the server has everything where it belongs
sys.exit(1 if file.TestBit(ROOT.TFile.kWriteError) else 0)
