# The common commands; `just` (https://just.systems) runs them, and each is one line to type without it.

# Lists the commands.
default:
    @just --list

# Formats everything.
format:
    cargo fmt --all
    cargo fmt --manifest-path fuzz/Cargo.toml

# What is quick to check while writing.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# All tests, of the documentation too; `just test FILTER` runs some.
test *filter:
    cargo test --workspace --locked {{filter}}

# The documentation of the crates, in a browser.
docs:
    cargo doc --no-deps --workspace --open

# A first answer from a real model.
demo *question="What is the capital of France?":
    cargo run --release --locked -- demo "{{question}}"

# The program as it is given to others: target/dist/unspool.
dist:
    cargo build --profile dist --locked

# The recorded answers of Python once more; arguments as in conformance/README.md.
cases *arguments:
    cargo run --locked -p unspool-conformance -- cases {{arguments}}

# Everything that must hold before a change is taken.
ci:
    .ci/run

# Properties with many more cases, perplexities, figures, long fuzzing.
long:
    .ci/long
