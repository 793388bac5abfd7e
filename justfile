# Shorthand for people who use just; the work is in tools/ and packaging/.

dist := "target/packages"

# List the recipes
default:
    @just --list

# Run the whole check sequence, or the steps named: fmt clippy test doc soak clients light packaging
check *steps:
    tools/check {{ steps }}

# Run everything that needs no LanceDB: the quick loop
light:
    ACK_CHECK_CARGO_FLAGS=--no-default-features tools/check fmt clippy test

# Check licences, advisories, duplicate crates and sources of the dependencies
deny:
    cargo deny check

# Build the sample scopes and show what the tools answer
demo:
    cargo run --no-default-features -- demo

# Build the published binary and the packages of it that need no other tool
package target=`rustc -vV | sed -n 's/^host: //p'`:
    cargo build --profile dist --locked --package ack-memory
    packaging/notices.py --target {{ target }} --out {{ dist }}
    for script in archive.py npm/pack.py pypi/wheel.py; do \
        packaging/$script "${CARGO_TARGET_DIR:-target}/dist/ack-memory" --out {{ dist }} \
            --notices {{ dist }}/THIRD-PARTY-LICENSES.txt || exit; \
    done
