//! Damage in the log.

use onrush_check::Invariant;

use crate::{Case, Kind, log_kind};

pub fn kinds() -> Vec<Kind> {
    use Invariant::{
        BlockChain, CountersPossible, LogReachesEnd, RecordDecodes, RecordFits, TornTail,
    };
    vec![
        log_kind("a block that does not follow the one before", BlockChain, |case| {
            inner_block(case, |block, dice| block[84] ^= 1 + (dice % 255) as u8)
        }),
        log_kind("a block of another place", BlockChain, |case| {
            inner_block(case, |block, dice| block[48 + 1] ^= 0x10 << (dice % 4))
        }),
        log_kind("a block of an earlier incarnation", BlockChain, |case| {
            inner_block(case, |block, _| block[32] ^= 1)
        }),
        log_kind("a block with an LSN that does not follow", BlockChain, |case| {
            inner_block(case, |block, dice| block[56] ^= 1 + (dice % 255) as u8)
        }),
        log_kind("a lost block in the middle", BlockChain, |case| {
            inner_block(case, |block, _| block.fill(0))
        }),
        log_kind("a log that ends before E", LogReachesEnd, |case| {
            let end = u64::from_le_bytes(case.model.copies[0][40..48].try_into().unwrap());
            let beyond = end + (1 << 30) + case.random.next() % (1 << 30);
            let newest = case.model.newest();
            case.model.copies[newest][40..48].copy_from_slice(&beyond.to_le_bytes());
            case.model.save_superblock();
            true
        }),
        log_kind("a last block that is torn", TornTail, |case| {
            let last = case.log.blocks.len() - 1;
            let block = &mut case.log.blocks[last];
            let at = 96 + case.random.below(block.bytes.len() - 96);
            block.bytes[at] ^= 1;
            case.model.write(&block.name, block.offset, &block.bytes);
            true
        }),
        log_kind("an incarnation of the log at its end", CountersPossible, |case| {
            let (first, high) = (case.random.below(case.log.blocks.len()), case.random.next());
            case.log.blocks[first].bytes[12] = 1;
            for block in &mut case.log.blocks[first..] {
                block.bytes[32..40].copy_from_slice(&(high | 1 << 61).to_le_bytes());
            }
            case.log.save(&mut case.model);
            true
        }),
        log_kind("a record of no kind", RecordDecodes, |case| {
            record(case, |payload, dice| payload[0] = 10 + (dice % 200) as u8)
        }),
        log_kind("a record whose key is longer than it", RecordDecodes, |case| {
            record(case, |payload, _| payload[2] = 0x7F)
        }),
        log_kind("a row of an object that never was", RecordFits, |case| {
            record(case, |payload, dice| payload[1] = 0x50 + (dice % 32) as u8)
        }),
        log_kind("a row that its table cannot have", RecordFits, |case| {
            record(case, |payload, _| {
                let last = payload.len() - 1;
                payload[3..last].fill(0xFF);
            })
        }),
    ]
}

/// Changes a block that is neither the first nor among the last, and repairs its own checksum only.
fn inner_block(case: &mut Case, change: impl FnOnce(&mut [u8], u64)) -> bool {
    let count = case.log.blocks.len();
    let number = 1 + case.random.below(count - 3);
    change(&mut case.log.blocks[number].bytes, case.random.next());
    case.log.save_block(&mut case.model, number);
    true
}

/// Changes the payload of a row's record, and repairs the checksums of all blocks.
fn record(case: &mut Case, change: impl FnOnce(&mut [u8], u64)) -> bool {
    let number = case.random.below(case.log.blocks.len());
    let block = &mut case.log.blocks[number];
    let rows = |range: &std::ops::Range<usize>| block.bytes[range.start] <= 3 && range.len() > 12;
    let payloads: Vec<_> = block.payloads().into_iter().filter(rows).collect();
    let Some(payload) = payloads.get(case.random.below(payloads.len().max(1))).cloned() else {
        return false;
    };
    change(&mut block.bytes[payload], case.random.next());
    case.log.save(&mut case.model);
    true
}
