# SPDX-License-Identifier: Apache-2.0
#
# Short names for the scripts in scripts/. CMake and its presets do the building: `cmake --preset release` works too.

PRESET ?= release
PREFIX ?= /usr/local
TREE ?=
MINUTES ?= 30
asked_prefix = $(if $(filter-out file default,$(origin PREFIX)),--prefix "$(PREFIX)")

.PHONY: help setup build zmq root demo test check lint format bench docs install bench-install uninstall soak wheel bare clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

setup: ## install the Debian and Python packages that are missing, of the tests and of lint, too
	@scripts/setup

build: ## build one preset into build/PRESET, with the tests: make build PRESET=debug
	@scripts/setup build unit
	@scripts/build $(PRESET)

install: ## install under PREFIX: make install PREFIX=$HOME/.local; for a package: DESTDIR=/somewhere PREFIX=/usr
	@scripts/install "$(PREFIX)"

bench-install: ## install what wherry bench starts, under PREFIX: make bench-install PREFIX=$HOME/.local
	@scripts/install --bench "$(PREFIX)"

uninstall: ## remove what was installed under PREFIX: make uninstall PREFIX=$HOME/.local
	@scripts/uninstall "$(PREFIX)"

zmq: ## libzmq with the wherry:// transport, for build/release or: make zmq PREFIX=$HOME/.local
	@scripts/setup build zmq
	@scripts/build-zmq $(asked_prefix)

root: ## the ROOT adapter, for build/release or: make root PREFIX=$HOME/.local
	@scripts/build-root $(asked_prefix)

wheel: ## the Python package as one wheel, in build/wheels, tried in a fresh environment
	@scripts/wheel

demo: ## many workers hand their files to the host, over Wherry and over TCP: make demo TREE=/some/tree; HOSTS=2
	@scripts/demo $${HOSTS:+--hosts "$$HOSTS"} $${TREE:+-- "$$TREE"}

test: ## run every test: release, ASan+UBSan, TSan, fuzz targets, model, outside project
	@scripts/test

check: ## the quick part of test
	@scripts/test quick

lint: ## clang-format, clang-tidy, rules about the source tree, headers that need others, the ABI
	@scripts/lint

format: ## reformat all C++ in place
	@scripts/lint --fix

bench: ## measure Wherry, its peers and the machine; report: build/bench/report.html
	@scripts/bench

bare: ## what a new user types, in a bare Debian 12 root (needs root): make bare VARIANT=install
	@scripts/bare $(VARIANT)

docs: ## the site of the documents: build/docs/site
	@scripts/docs

soak: ## the stress tests for MINUTES: make soak MINUTES=120
	@scripts/setup build test
	@scripts/soak $(MINUTES)

clean: ## remove build/ and .venv/; setup looks again at the next make
	@echo "removing build/ and .venv/"
	@rm -rf build .venv
