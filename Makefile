# Shortcuts for Meson: `make demo` and `make test` work in a fresh clone on Debian 12.
BUILD = build
TEST_BUILD = build/test
PYTHON = /usr/bin/python3
# Meson finds Debian's library folder, lib/x86_64-linux-gnu, with dpkg-dev only; neither pkg-config nor the loader searches
# elsewhere. The compiler always knows it; where there is no such folder it prints nothing.
MULTIARCH = $(shell $(CC) -print-multiarch 2>/dev/null)
SETUP = meson setup $(if $(MULTIARCH),-Dlibdir=lib/$(MULTIARCH))

.PHONY: all demo test test-build test-frameworks check bench bench-peers install uninstall wheel clean format tidy packages-build packages-test

all: packages-build
	@[ -f $(BUILD)/build.ninja ] || $(SETUP) $(BUILD)
	@ninja -C $(BUILD)
	@ln -sf src/cli/wattle $(BUILD)/wattle

demo: all
	@$(CC) -O2 -Iinclude -o $(BUILD)/demo-workload tools/demo-workload.c $(BUILD)/src/libwattle.a -pthread -lm -ldl
	$(BUILD)/wattle run -q --overwrite -o $(BUILD)/demo.sqlite -- $(BUILD)/demo-workload
	$(BUILD)/wattle report $(BUILD)/demo.sqlite
	$(BUILD)/wattle report $(BUILD)/demo.sqlite --format html -o $(BUILD)/demo.html
	@echo "Page with charts, for any browser: $(abspath $(BUILD)/demo.html)"

# The tests run under ASan and UBSan (their reports need only line numbers, hence -g1). One of them is that clang finds no warning in the same sources and
# in the benchmarks.
test-build: packages-build packages-test
	@[ -f $(TEST_BUILD)/build.ninja ] || $(SETUP) $(TEST_BUILD) -Dtests=true -Dwerror=true \
		-Db_sanitize=address,undefined -Dc_args=-g1
	@ninja -C $(TEST_BUILD)

test: test-build
	@$(PYTHON) tools/run-tests.py $(TEST_BUILD) --second-try

# PyTorch 2, Lightning, transformers, Keras, JAX …: creates their virtual environments once (about 11 GB; tests/frameworks/environments.py).
test-frameworks: test-build
	@$(PYTHON) tests/frameworks/environments.py create
	@WATTLE_FRAMEWORKS_LONG=1 $(PYTHON) tools/run-tests.py $(TEST_BUILD) frameworks

# Unit tests and a short test of each command.
check: test-build
	@$(PYTHON) tools/run-tests.py $(TEST_BUILD) check

bench: packages-build
	@[ -f $(BUILD)/build.ninja ] || $(SETUP) $(BUILD)
	@meson configure $(BUILD) -Dbench=true
	@ninja -C $(BUILD)
	@$(PYTHON) bench/bench.py $(BUILD)

# wattle beside other meters on one simulated machine, at most 15 minutes; rewrites the tables of docs/comparison.md. Needs root. The
# first time it installs bench/peers/requirements.txt into a virtual environment outside the source tree.
bench-peers: packages-build
	@[ -f $(BUILD)/build.ninja ] || $(SETUP) $(BUILD)
	@meson configure $(BUILD) -Dbench=true
	@ninja -C $(BUILD)
	@$(PYTHON) bench/peers/peers.py $(BUILD) --markdown docs/comparison.md

# PREFIX=/opt/wattle and DESTDIR=/tmp/package as usual. Prints the variables to set for a PREFIX outside of the standard ones.
install: all
	@$(if $(PREFIX),meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX)) && ninja -C $(BUILD))
	@$(PYTHON) tools/install.py $(BUILD) "$(DESTDIR)"

# Exactly the files that the last `make install` with this PREFIX wrote, and its folders if they are empty. Needs no build.
uninstall:
	@$(PYTHON) tools/install.py --uninstall "$(or $(and $(PREFIX),$(abspath $(PREFIX))),$(shell [ -f $(BUILD)/build.ninja ] && \
		$(PYTHON) tools/install.py --prefix-of $(BUILD)),/usr/local)" "$(DESTDIR)"

# dist/wattle-….whl, which needs nothing but Python and glibc; checked by auditwheel, twine and tests/python/wheel.py.
wheel: packages-build
	@$(PYTHON) tools/make-wheel.py . $(BUILD)/wheel dist

clean:
	rm -rf $(BUILD)

format:
	git ls-files '*.c' '*.h' '*.cpp' | xargs clang-format -i

tidy: all
	git ls-files 'src/*.c' | xargs clang-tidy -p $(BUILD) --quiet

packages-build:
	@tools/install-packages.sh build

packages-test:
	@tools/install-packages.sh test
