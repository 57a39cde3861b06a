# make serve   starts the gateway; ARGS="--data DIR …" are its options
# make test    runs every test
# make simulate SEEDS=n   plays n whole gateways and checks the promises; ARGS="--first S --steps K"
# make network-test   lets peers go without a word, over real paths that are cut
# make api-test   asks a gateway all that the tables of Tests/Conformance ask, and lets generated requests loose on it
# make crash-test ROUNDS=20 SEED=…   kills a gateway under load and compares what was answered with what was delivered
# make bench   compares the gateway with mosquitto, NATS, redis and the floor; ARGS="--only online,floor,ferry"
# make bench-scale   measures how costs grow with sessions, kept messages, backlogs and shards; ARGS="--only idle"
# make check   runs the checks of .ci/checks, without building
# make deps    installs the Debian packages that are missing

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PACKAGES := libcurl4-openssl-dev librocksdb-dev libsimdjson-dev libssl-dev zlib1g-dev python3 curl ca-certificates iproute2
# What a toolchain needs that was only unpacked; installed when it does not run, or has no C++ library to compile with.
TOOLCHAIN_PACKAGES := g++ git libncurses-dev libsqlite3-dev libxml2-dev
ARGS ?=
SEEDS ?= 1000
ROUNDS ?= 20
SEED ?=

say = @printf '==> %s\n' '$(1)' >&2

.PHONY: help serve test simulate network-test api-test crash-test bench bench-scale check format deps swift

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

# The shell becomes the gateway, so that signals reach it.
serve: deps
	$(call say,building ferry for release; the first time takes some minutes)
	@swift build -c release --product ferry >&2 \
		|| { echo 'make serve: ferry could not be built, the reason is above' >&2; exit 1; }
	$(call say,ferry serve $(ARGS))
	@exec .build/release/ferry serve $(ARGS)

simulate: deps
	@swift build -c release --product ferry >&2 \
		|| { echo 'make simulate: ferry could not be built, the reason is above' >&2; exit 1; }
	@.build/release/ferry simulate --seeds $(SEEDS) $(ARGS)

# Searches fill the threads that end-to-end tests would wait for their processes on: one kind after the other.
test: deps
	$(call say,building ferry and its tests; the first time takes some minutes)
	@swift build --build-tests || { echo 'make test: the build failed, the reason is above' >&2; exit 1; }
	$(call say,unit tests)
	@swift test --skip-build --disable-xctest --skip '^EndToEndTests\.' \
		|| { echo 'make test: a unit test failed, its name is above' >&2; exit 1; }
	$(call say,end-to-end tests)
	@swift test --skip-build --disable-xctest --filter '^EndToEndTests\.' \
		|| { echo 'make test: an end-to-end test failed, its name is above' >&2; exit 1; }
	$(call say,vectors of the protocol)
	@python3 protocol-spec/vectors/generate.py --check
	$(call say,vectors as the device in Python reads them)
	@python3 examples/device-python/check_vectors.py
	$(call say,vectors as the backend in Python reads them)
	@python3 examples/python/check_vectors.py
	$(call say,examples against a running gateway)
	@python3 examples/test.py .build/debug/ferry

crash-test: deps
	$(call say,building ferry for release; the first time takes some minutes)
	@swift build -c release --product ferry >&2 \
		|| { echo 'make crash-test: ferry could not be built, the reason is above' >&2; exit 1; }
	$(call say,$(ROUNDS) rounds of kills)
	@PYTHONDONTWRITEBYTECODE=1 python3 Tests/CrashCampaign/campaign.py .build/release/ferry \
		--rounds '$(ROUNDS)' $(if $(SEED),--seed '$(SEED)')

bench: deps
	$(call say,what the gateway is compared with)
	@bench/setup
	@python3 bench/test_comparison.py
	$(call say,building ferry for release; the first time takes some minutes)
	@bench/run $(ARGS)

bench-scale: deps
	$(call say,what draws the plots)
	@bench/setup
	@python3 bench/test_comparison.py
	$(call say,building ferry for release; the first time takes some minutes)
	@bench/scale $(ARGS)

network-test: deps
	$(call say,building ferry for release; the first time takes some minutes)
	@swift build -c release --product ferry >&2 \
		|| { echo 'make network-test: ferry could not be built, the reason is above' >&2; exit 1; }
	@PYTHONDONTWRITEBYTECODE=1 python3 Tests/Network/half_open.py .build/release/ferry

api-test: deps
	$(call say,building ferry for release; the first time takes some minutes)
	@swift build -c release --product ferry >&2 \
		|| { echo 'make api-test: ferry could not be built, the reason is above' >&2; exit 1; }
	@PYTHONDONTWRITEBYTECODE=1 python3 Tests/Conformance/run.py .build/release/ferry
	@PYTHONDONTWRITEBYTECODE=1 python3 Tests/Conformance/client_tests.py .build/release/ferry
	@PYTHONDONTWRITEBYTECODE=1 python3 Tests/Conformance/fuzz.py .build/release/ferry $(ARGS)

check: swift
	@for check in .ci/checks/*.py; do \
		[ "$$check" = .ci/checks/common.py ] && continue; \
		printf '==> %s\n' "$$check" >&2; python3 "$$check"; \
	done

format: swift
	@swift format --in-place --parallel -r Package.swift Sources Tests

deps: swift
	@command -v dpkg-query >/dev/null || { \
		echo 'make: this is no Debian system; install the equivalents of: $(PACKAGES)' >&2; exit 1; }
	@missing=; \
	wanted='$(PACKAGES)'; \
	if ! swift --version >/dev/null 2>&1 || ! compgen -G '/usr/include/c++/*/string' >/dev/null; then \
		wanted="$$wanted $(TOOLCHAIN_PACKAGES)"; \
	fi; \
	for package in $$wanted; do \
		status=$$(dpkg-query -W -f='$${db:Status-Status}' $$package 2>/dev/null) || status=; \
		[ "$$status" = installed ] || missing="$$missing $$package"; \
	done; \
	[ -n "$$missing" ] || exit 0; \
	printf '==> installing%s\n' "$$missing" >&2; \
	as_root=; \
	if [ "$$(id -u)" != 0 ]; then \
		as_root=sudo; \
		command -v sudo >/dev/null || { \
			echo "make: install as root:$$missing" >&2; exit 1; }; \
	fi; \
	$$as_root apt-get update >&2 \
		|| { echo 'make: apt-get update failed; is the network there?' >&2; exit 1; }; \
	$$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $$missing >&2 \
		|| { echo "make: these packages could not be installed:$$missing" >&2; exit 1; }

swift:
	@command -v swift >/dev/null || { \
		echo 'make: there is no swift; install Swift 6.2 or later (https://www.swift.org/install/linux) and add it to PATH' >&2; \
		exit 1; }
