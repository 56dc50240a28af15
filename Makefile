# What one does with berth's tree. `make build`, `make run` and `make test` are all a newcomer needs;
# CMakePresets.json has the configurations behind them.
SHELL := /bin/bash
.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: deps build run test soak format tidy bench clean \
        check-arrows check-format test-unit test-e2e test-vm test-clients test-asan test-fuzz test-tsan \
        asan-everything asan-live soak-live

# Debian's Python: it is the one that has Debian's pytest.
PYTHON := /usr/bin/python3
JOBS ?= $(shell nproc)
# Warnings are errors where nobody is there to read them.
PRESET ?= $(if $(CI),ci,release)
# Seconds for each fuzzer in `make soak`.
SOAK_SECONDS ?= 600
# What `make test` builds with sanitizers: the modules that read what others wrote; `make soak` takes all
# (the tests of `place` are the heaviest of the library).
ASAN_MODULES = base tls text conf request site script lint explain wire pmi survey launch cgroup
FUZZ_MODULES = $(ASAN_MODULES) net auth step store job
FUZZERS = $(patsubst %_fuzz.cpp,fuzz_%,$(notdir $(wildcard $(FUZZ_MODULES:%=src/%/*_fuzz.cpp))))
# What reads the bytes of others: of a network, a spool, a store. They get a number of executions, however long that takes;
# those that do a thousand a second a tenth of it in `make test`.
DECODERS = fuzz_frame fuzz_field_limits fuzz_job_list fuzz_tokens fuzz_pmi fuzz_name_service fuzz_survey \
           fuzz_step_record fuzz_acknowledged
SLOW_DECODERS = fuzz_session fuzz_pem fuzz_job_record
# For each of them in `make soak`.
SOAK_RUNS ?= 10000000
ASAN_TESTS = $(foreach m,$(ASAN_MODULES),$(if $(wildcard src/$(m)/*_test.cpp),$(m)_test))
empty :=
space := $(empty) $(empty)
# Modules with threads, and the daemons.
TSAN_TESTS = net_test store_test auth_test controller_test node_test
PROGRAMS = berth berthctld berthd berth-stepd berth-pmix berth-nvml berth-fake-nvml

SOURCES = $(wildcard src/*/*.cpp src/*/*.h cmake/*.cpp)

deps:
	@tools/install-packages

build: deps
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) -j $(JOBS)

# No more than what it runs: tests and benchmarks are as much again for the compiler.
run: deps
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) -j $(JOBS) --target $(PROGRAMS)
	@examples/run-gpu-map build/bin

# Everything CI checks, cheapest first. In CI, .ci/run prints the tally, also after a failure.
test: deps check-arrows check-format build test-unit test-e2e test-asan test-fuzz
	@[ -n "$$CI" ] || tools/count-results

check-arrows:
	tools/check-arrows

check-format: deps
	@clang-format-19 --dry-run -Werror $(SOURCES)

# Some start processes of their own; one that fails is run again, and both runs are printed.
test-unit: build
	@rm -rf build/results
	ctest --preset $(PRESET) -j $(JOBS) --timeout 600 --repeat until-pass:2 \
	  --output-junit results/ctest.xml

test-e2e: build
	@rm -f build/results/pytest.xml
	$(PYTHON) -m pytest -q -p no:cacheprovider --junitxml=build/results/pytest.xml tests

# The fence once more, on a kernel with cgroup v2 alone, whatever this machine has. CI runs it after `make test`.
test-vm: build
	@tools/install-packages tools/vm-packages.txt
	@rm -f build/results/vm.xml
	tools/vm --junitxml build/results/vm.xml -q tests/test_fence.py

# Programs of others that drive Slurm, unmodified. They bring hundreds of packages along, so that they
# are not part of `make test`; CI runs them after it.
test-clients: build
	@tools/install-packages tools/client-packages.txt
	@rm -f build/results/clients.xml
	BERTH_REPEAT=100 $(PYTHON) -m pytest -q -p no:cacheprovider --junitxml=build/results/clients.xml \
	  tests/clients tests/test_rank_failure.py

# One build has sanitizers and fuzzers: a second one would cost minutes.
test-asan: deps
	@rm -rf build-asan/results
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS) --target $(ASAN_TESTS) $(FUZZERS)
	ctest --preset asan -j $(JOBS) --timeout 600 --output-junit results/ctest.xml \
	  -R '^($(subst $(space),|,$(ASAN_TESTS)))$$'

test-fuzz: test-asan
	tools/fuzz --runs 100000 --results decoders.xml $(DECODERS)
	tools/fuzz --runs 10000 --results slow-decoders.xml $(SLOW_DECODERS)
	tools/fuzz --seconds 3 --at-most 40 $(filter-out $(DECODERS) $(SLOW_DECODERS),$(FUZZERS))

asan-everything: deps
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS)

# Live clusters of sanitized programs; also a report of a daemon that nobody sees end fails it.
# Figures of speed and size are not for these builds.
asan-live: asan-everything
	tools/sanitizer-reports BERTH_BIN=build-asan/bin $(PYTHON) -m pytest -q -p no:cacheprovider \
	  tests/test_up.py tests/test_seeds_run.py tests/test_users.py tests/test_corpus.py tests/test_soak.py \
	  tests/test_reservations.py tests/test_preempt.py tests/test_power.py tests/test_topology.py \
	  tests/test_licenses.py tests/test_queue.py
	tools/sanitizer-reports BERTH_BIN=build-asan/bin $(PYTHON) tests/soak/load.py

# Unit tests of what has threads, then a live cluster under load whose daemons are killed and started again.
test-tsan: deps
	cmake --preset tsan
	cmake --build --preset tsan -j $(JOBS) --target $(TSAN_TESTS) $(PROGRAMS)
	tools/sanitizer-reports ctest --preset tsan --timeout 1800 \
	  -R '^($(subst $(space),|,$(TSAN_TESTS)))$$'
	tools/sanitizer-reports BERTH_BIN=build-tsan/bin $(PYTHON) tests/soak/load.py --seconds 120

# 500 kill schedules on one machine and 500 over four hosts, 10,000 jobs with a line about memory for every 1,000, 1,000 times a GPU that comes and goes.
soak-live: build
	$(PYTHON) tests/crash/schedule.py --seed 1 --count 500
	$(PYTHON) tests/hosts/schedules.py --seed 1 --count 500
	$(PYTHON) tests/soak/jobs.py --jobs 10000
	BERTH_FLAPS=1000 $(PYTHON) -m pytest -q -p no:cacheprovider tests/test_gpu_health.py -k comes_and_goes

# Hours rather than minutes: fuzzers for long, property tests with many more rounds, 100,000 seeds of
# rehearsals, everything under sanitizers, hundreds of kill schedules, thousands of jobs.
soak: build asan-everything
	tools/fuzz --runs $(SOAK_RUNS) --results decoders.xml $(DECODERS) $(SLOW_DECODERS)
	tools/fuzz --seconds $(SOAK_SECONDS)
	BERTH_SOAK=1 ctest --preset $(PRESET) --timeout 14400
	BERTH_SOAK=1 BERTH_REHEARSAL_SEEDS=10000 tools/sanitizer-reports ctest --preset asan --timeout 14400
	$(MAKE) asan-live test-tsan soak-live

format: deps
	clang-format-19 -i $(SOURCES)

tidy: deps
	cmake --preset tidy
	cmake --build --preset tidy -j $(JOBS)
	run-clang-tidy-19 -quiet -p build-tidy -j $(JOBS) '$(CURDIR)/src/.*'

bench: build
	@for program in $$(cat build/bench/programs.txt); do \
	  echo "== $$program"; "build/bench/$$program" || exit 1; done
	@for script in bench/*; do \
	  [ -x "$$script" ] || continue; echo "== $$script"; "$$script" || exit 1; done

clean:
	rm -rf build build-debug build-asan build-tsan build-tidy
