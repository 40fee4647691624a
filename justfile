# One command a line, for those who have `just`. All of them work without it.

# Every test
test:
    cargo xtask test

# Style, layers, links, formatting, lints
check:
    cargo xtask check

# The documents that are made from code
generate:
    cargo xtask generate

# The documents as a site, in target/site/book
site:
    cargo xtask site

# What runs on every change
ci:
    .ci/run

# The main job
singleton:
    cargo run --release -p onrush-cli --no-default-features -- lab run singleton
