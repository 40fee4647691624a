//! cargo-fuzz on the reader of this name; see `crates/fuzz`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Some(target) = onrush_fuzz::target("wire_before_start") {
        (target.read)(input);
    }
});
