# Meson builds; this file only remembers the commands.  `make help` lists them.
B       := build
MESON   := meson
PYTHON  := /usr/bin/python3
PREFIX  ?= /usr/local
DESTDIR ?=
FUZZ    ?= all
TIME    ?= 60
MINUTES ?= 5
SEED    ?=
# The end-to-end tests take 1,400 ports from here on.
PORTS   ?= 21300
RANGE    = QUEEN_TEST_PORTS=$(shell expr $(PORTS) + $(1))-$(shell expr $(PORTS) + $(1) + 199)
# CI treats warnings as errors, also in an existing build directory.
STRICT   = $(if $(CI),$(MESON) configure $(1) -Dwerror=true)
# `make run` may have configured the directory when only the packages of the broker were installed.
WHOLE    = @grep -qs '@@queen-platform@exe' $(1)/meson-info/intro-targets.json && \
	grep -qs '@@client_worker@exe' $(1)/meson-info/intro-targets.json || \
	$(MESON) setup --reconfigure $(1) -Dplatform=enabled -Dtests=enabled
# Tests that also run against two brokers on one database.
TWO_BROKERS = $(addprefix tests/e2e/broker/test_,push.py pop.py ack.py transaction.py retries.py redrive.py lease.py groups.py dedup.py configure.py)
C_FILES  = $(shell git ls-files '*.c' '*.h')

.PHONY: all release broker debug asan tsan deps run demo test unit e2e e2e-one e2e-more e2e-rest e2e-platform e2e-pairs e2e-pooler e2e-web web torture check lint bench bench-peers bench-scaling format format-check \
	layers sizes frozen walks doc-links tidy fuzz docs docs-check install dist deb test-deb test-ha test-kubernetes test-versions clean help
.DEFAULT_GOAL := all

all: release         ## hardened release build of everything; the programs are build/queen and build/queen-platform
release: $(B)/release/build.ninja
	$(call STRICT,$(B)/release)
	$(call WHOLE,$(B)/release)
	ninja -C $(B)/release
	@install -m 755 $(B)/release/cli/queen $(B)/release/platform/src/program/queen-platform $(B)

broker: $(B)/release/build.ninja  ## only build/queen: the broker and the command line
	ninja -C $(B)/release cli/queen
	@install -m 755 $(B)/release/cli/queen $(B)

debug asan tsan: %: $(B)/%/build.ninja  ## the same without optimisation, or with sanitizers, in build/<name>
	$(call STRICT,$(B)/$*)
	$(call WHOLE,$(B)/$*)
	ninja -C $(B)/$*
	@install -m 755 $(B)/$*/cli/queen $(B)/$*/platform/src/program/queen-platform $(B)/$*

$(B)/release/build.ninja: ; $(MESON) setup $(B)/release --buildtype=debugoptimized -Dhardened=true -Db_pie=true --prefix=$(PREFIX)
$(B)/debug/build.ninja:   ; $(MESON) setup $(B)/debug
$(B)/asan/build.ninja:    ; $(MESON) setup $(B)/asan -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false
$(B)/tsan/build.ninja:    ; $(MESON) setup $(B)/tsan -Doptimization=1 -Db_sanitize=thread -Db_lundef=false

deps:                ## install missing Debian packages for building
	tools/deps.sh build

run: deps            ## build and start the broker; settings come from the environment
	$(MAKE) broker
	$(B)/queen serve

demo:                ## broker, platform and five tenants with live events, until Ctrl-C
	tools/deps.sh platform
	$(MAKE) release
	$(PYTHON) tools/demo.py

test:                ## unit and end-to-end tests, after installing what they need
	tools/deps.sh test
	$(MAKE) release
	$(MAKE) unit e2e

unit:                ## unit tests of the release build
	$(MESON) test -C $(B)/release --suite unit --print-errorlogs

e2e:                 ## black-box tests of build/queen, or of $QUEEN_BIN; a part of them again with two brokers
	$(MAKE) -j4 e2e-one e2e-more e2e-rest e2e-platform e2e-pairs e2e-pooler e2e-web   # they wait more than they work

e2e-one:
	$(call RANGE,0) $(PYTHON) -m pytest -q $(ONLY) tests/e2e/broker/test_[a-l]*.py

e2e-more:
	$(call RANGE,600) $(PYTHON) -m pytest -q $(ONLY) tests/e2e/broker/test_[m-r]*.py

e2e-rest:
	$(call RANGE,1000) $(PYTHON) -m pytest -q $(ONLY) tests/e2e/broker/test_[s-z]*.py

e2e-platform:
	$(call RANGE,400) $(PYTHON) -m pytest -q $(ONLY) tests/e2e/platform

e2e-pairs:
	$(call RANGE,200) QUEEN_TEST_BROKERS=2 $(PYTHON) -m pytest -q $(ONLY) $(TWO_BROKERS)

e2e-pooler:          ## a part of the black-box tests with the brokers behind PgBouncer in transaction mode
	$(call RANGE,1200) QUEEN_TEST_POOLER=1 $(PYTHON) -m pytest -q $(ONLY) $(TWO_BROKERS) $(addprefix tests/e2e/broker/test_,longpoll.py streams.py scheduled.py work_queue.py owners.py concurrency.py)

e2e-web:
	$(call RANGE,800) $(PYTHON) -m pytest -q $(ONLY) tests/e2e/web

web:                 ## build the dashboard, web/dist, from its sources; needs Node
	tools/deps.sh test
	cd web && npx tsc --noEmit && node build.mjs

torture: release     ## faults under load, and a check of what clients saw: make torture MINUTES=60 SEED=7
	$(PYTHON) tests/torture/torture.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

e2e-two:             ## all black-box tests with two brokers on one database that take the requests in turn
	QUEEN_TEST_BROKERS=2 $(PYTHON) -m pytest -q tests/e2e

check:               ## everything that must hold before a push; one line per part, stops at the first failure
	tools/deps.sh check
	tools/check.py $(PARTS)

lint: format-check layers sizes frozen walks doc-links  ## checks without a build: format, layers, sizes, frozen schema, names in the walks, links

bench: release       ## the benchmarks; see bench/
	bench/run.sh

bench-scaling: release ## cost by the number of partitions and by the backlog; about 6 minutes
	ROWS=scaling bench/run.sh

bench-peers: release ## the same traffic against Redis streams and plain SQL
	tools/deps.sh bench
	$(PYTHON) bench/peers.py

format:              ## rewrite all C files with clang-format
	clang-format -i $(C_FILES)
format-check:
	clang-format --dry-run -Werror $(C_FILES)
layers:
	tools/check_layers.py
sizes:
	tools/check_sizes.py
frozen:
	tools/check_frozen.sh
walks:
	tools/check_walks.py
doc-links:
	tools/check_docs.py
tidy: debug          ## clang-tidy over all C sources
	tools/tidy.py $(B)/debug
fuzz:                ## one fuzzer or all: make fuzz FUZZ=scan TIME=60
	tools/fuzz.sh $(FUZZ) $(TIME)

docs: release        ## write docs/reference/configuration.md and docs/reference/man/queen-commands.1.scd from their tables
	$(B)/queen serve --print-markdown > docs/reference/configuration.md
	$(B)/queen-platform --print-markdown > platform/docs/configuration.md
	$(B)/queen manual > docs/reference/man/queen-commands.1.scd
docs-check:
	$(B)/queen-platform --print-markdown | diff -u platform/docs/configuration.md -
	$(B)/queen serve --print-markdown | diff -u docs/reference/configuration.md -
	$(B)/queen manual | diff -u docs/reference/man/queen-commands.1.scd -

install: release     ## into $(DESTDIR)$(PREFIX)
	$(MESON) configure $(B)/release --prefix=$(PREFIX)
	ninja -C $(B)/release
	DESTDIR=$(DESTDIR) $(MESON) install -C $(B)/release --no-rebuild

VERSION  = $(shell sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
dist:                ## release tarball of the commit, build/dist/queen-VERSION.tar.xz
	tools/dist.sh $(VERSION) $(B)/dist

deb: dist            ## Debian packages of the commit, in build/deb
	tools/deps.sh deb
	tools/deb.sh $(VERSION) $(B)/dist $(B)/deb

KUBERNETES = 1.0.0 sha512-a8NSvFDSHKFZ0sR1hbPSf8IDFNJwctEU5RodSCNiq/moRXWmrdmqhb1RRQzF+l+TSBaDgHw3YsYNxxE92STBzw==
test-kubernetes:     ## manifests against the types of the Kubernetes API; needs kubectl 1.27 and npm
	test -d $(B)/kubernetes/dist || tools/npm_package.sh @kubernetes/client-node $(KUBERNETES) $(B)/kubernetes
	$(PYTHON) tests/kubernetes/check_schema.py $(B)/kubernetes/dist/gen/models

test-ha: broker      ## failovers of Patroni under load, with etcd and HAProxy: make test-ha MINUTES=60; needs root
	tools/deps.sh test-ha
	$(call RANGE,0) $(PYTHON) tests/ha/ha.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

VERSIONS ?= 14 15 16 17 18
test-versions: release  ## a part of the black-box tests on other versions of PostgreSQL: make test-versions VERSIONS="14 18"
	tools/deps.sh test
	for v in $(VERSIONS); do tests/versions/fetch.sh $$v $(B)/postgres || exit 1; done
	for v in $(VERSIONS); do echo "PostgreSQL $$v"; $(call RANGE,0) PG_BIN=$(CURDIR)/$(B)/postgres/$$v/bin QUEEN_PG_BIN=$(CURDIR)/$(B)/postgres/$$v/bin \
	  $(PYTHON) -m pytest -q $(addprefix tests/e2e/broker/test_,managed.py push.py pop.py ack.py transaction.py retries.py dlq.py work_queue.py \
	    scheduled.py streams.py sql_surface.py retention.py embedded_version.py) || exit 1; done

test-deb: deb        ## installs, starts, upgrades and removes the packages in a throw-away root; needs root
	tools/deps.sh test-deb
	$(PYTHON) -m pytest -q -o faulthandler_timeout=0 tests/packages/test_deb.py

clean:               ## forget all builds
	rm -rf $(B)/release $(B)/debug $(B)/asan $(B)/tsan $(B)/fuzz $(B)/tidy $(B)/check $(B)/dist $(B)/deb $(B)/queen $(B)/queen-platform

help:
	@sed -n 's/^\([a-z0-9 -]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
