//! A check, and a backup, of a database whose key ranges have stocks: the rows are counted as the newest runs have
//! them, and damage of each kind in runs and their heads is found.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{Fixture, Random, all_rows, assert_same_rows, delayed_session, note, noted, notes};
use onrush::{
    Background, CheckOptions, CheckProgress, CheckReport, Database, OnlineOptions, Options,
    PastMemory, Row, Session, Table,
};
use onrush_check::{Invariant, check};
use onrush_files::OpenMode;
use onrush_waits::Counter;

const SLOT_BYTES: usize = 16 << 10;
const BASE: u8 = 1;
const FRAGMENT: u8 = 2;

type Model = BTreeMap<i64, String>;

fn fixture(background: Background) -> Fixture {
    let mut fixture = Fixture::in_memory().with_little_memory();
    fixture.options = Options { past_memory: PastMemory::Always, background, ..fixture.options };
    fixture
}

fn full_speed() -> OnlineOptions {
    OnlineOptions { busy_percent: 100, ..OnlineOptions::default() }
}

fn rows(model: &Model) -> Vec<Row> {
    model.iter().map(|(id, text)| noted(*id, text)).collect()
}

/// Inserts, changes and removes rows, in the table and in the model.
fn change(
    session: &mut Session,
    table: &Table,
    random: &mut Random,
    model: &mut Model,
    times: u64,
) {
    for _ in 0..times {
        let id = random.id_below(5000);
        let text = format!("{id} {}", "x".repeat(random.below(300) as usize));
        if random.below(4) == 0 {
            session.delete(table, &[id.into()]).unwrap();
            model.remove(&id);
        } else {
            session.upsert(table, &note(id, &text)).unwrap();
            model.insert(id, text);
        }
    }
}

/// A table of ranges that were flushed, compacted and divided, with fragments and removals.
fn filled(fixture: &Fixture) -> (Database, Table, Model) {
    let (db, table) = fixture.create_with(notes());
    let mut session = delayed_session(&db);
    let (mut random, mut model) = (Random(1), Model::new());
    for _ in 0..12 {
        change(&mut session, &table, &mut random, &mut model, 700);
        db.checkpoint().unwrap();
    }
    let count = |counter| db.statistics().totals.counter(counter);
    assert!(count(Counter::RangeFlushes) > 0 && count(Counter::RangeCompactions) > 0);
    assert!(count(Counter::RangesDivided) > 0);
    change(&mut session, &table, &mut random, &mut model, 60);
    db.checkpoint().unwrap();
    (db, table, model)
}

#[test]
fn nothing_is_found_in_a_sound_database_and_rows_are_counted_once() {
    let fixture = fixture(Background::Callers);
    let (db, table, mut model) = filled(&fixture);
    let report = db.check(&full_speed(), &CheckProgress::default()).unwrap();
    assert!(report.is_sound() && report.findings.is_empty(), "{report}");
    assert_eq!(report.tables[0].rows, model.len() as u64, "{report}");
    let physical = CheckOptions { physical_only: true, ..CheckOptions::default() };
    let options = OnlineOptions { check: physical, compare_rows: false, ..full_speed() };
    let physical = db.check(&options, &CheckProgress::default()).unwrap();
    assert!(physical.is_sound() && physical.findings.is_empty(), "{physical}");
    assert_eq!(physical.tables[0].images, report.tables[0].images);
    // In front of the stocks, and in the log.
    change(&mut delayed_session(&db), &table, &mut Random(2), &mut model, 500);
    let report = db.check(&full_speed(), &CheckProgress::default()).unwrap();
    assert!(report.is_sound() && report.findings.is_empty(), "{report}");
    drop(table);
    db.close().unwrap();
    for dop in [1, 3] {
        let report = checked(&fixture, &CheckOptions { dop, ..CheckOptions::default() });
        assert!(report.is_sound() && report.findings.is_empty(), "{report}");
        assert_eq!(report.tables[0].rows, model.len() as u64, "{report}");
    }
}

#[test]
fn while_rows_change_nothing_is_found() {
    let fixture = fixture(Background::Threads);
    let (db, table) = fixture.create_with(notes());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut session = delayed_session(&db);
            let (mut random, mut model) = (Random(3), Model::new());
            while !stop.load(Ordering::Relaxed) {
                change(&mut session, &table, &mut random, &mut model, 500);
                db.checkpoint().unwrap();
            }
        });
        for round in 0..15 {
            let check = CheckOptions { dop: 1 + round % 3, ..CheckOptions::default() };
            let options = OnlineOptions { check, ..full_speed() };
            let report = db.check(&options, &CheckProgress::default()).unwrap();
            if !report.findings.is_empty() {
                stop.store(true, Ordering::Relaxed);
            }
            assert!(report.is_sound() && report.findings.is_empty(), "round {round}: {report}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_backup_opens_with_the_same_rows() {
    let fixture = fixture(Background::Callers);
    let (db, table, mut model) = filled(&fixture);
    change(&mut delayed_session(&db), &table, &mut Random(4), &mut model, 300);
    let copy = fixture.folder.path().join("copy");
    db.backup(&copy, &full_speed(), &CheckProgress::default()).unwrap();
    let disk = Arc::clone(&fixture.disk);
    let copied = Database::open_on(disk, &copy, fixture.options.clone()).unwrap();
    let table = copied.table("notes").unwrap();
    let stored = all_rows(&mut copied.session().unwrap(), &table);
    assert_same_rows(&stored, &rows(&model), "in the copy");
    copied.close().unwrap();
    let report = check(
        Arc::clone(&fixture.disk),
        &copy,
        &CheckOptions::default(),
        &CheckProgress::default(),
    );
    let report = report.unwrap();
    assert!(report.is_sound() && report.findings.is_empty(), "{report}");
    assert_eq!(report.tables[0].rows, model.len() as u64, "{report}");
}

/// Checks a database that nobody has open.
fn checked(fixture: &Fixture, options: &CheckOptions) -> CheckReport {
    let disk = Arc::clone(&fixture.disk);
    check(disk, &fixture.path(), options, &CheckProgress::default()).unwrap()
}

/// The bytes of a closed database, to be changed with all checksums made right again.
#[derive(Clone)]
struct Stored {
    data: Vec<u8>,
    superblock: Vec<u8>,
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Replaces bytes wherever they stand; whether they stood somewhere.
fn replace(bytes: &mut [u8], old: &[u8], new: &[u8]) -> bool {
    let places: Vec<usize> = (0..=bytes.len().saturating_sub(old.len()))
        .filter(|at| bytes[*at..].starts_with(old))
        .collect();
    places.iter().for_each(|at| bytes[*at..*at + new.len()].copy_from_slice(new));
    !places.is_empty()
}

impl Stored {
    fn paths(fixture: &Fixture) -> [PathBuf; 2] {
        ["data-00.onrush", "superblock.onrush"].map(|name| fixture.path().join(name))
    }

    fn load(fixture: &Fixture) -> Stored {
        let [data, superblock] = Stored::paths(fixture).map(|path| {
            let file = fixture.disk.open(&path, OpenMode::ReadOnly).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_at(&mut bytes, 0).unwrap();
            bytes
        });
        Stored { data, superblock }
    }

    fn save(&self, fixture: &Fixture) {
        for (path, bytes) in Stored::paths(fixture).iter().zip([&self.data, &self.superblock]) {
            let file = fixture.disk.open(path, OpenMode::ReadWrite).unwrap();
            file.write_at(bytes, 0).unwrap();
        }
    }

    fn page(&mut self, slot: usize) -> &mut [u8] {
        &mut self.data[slot * SLOT_BYTES..(slot + 1) * SLOT_BYTES]
    }

    /// The slots that hold such pages, free ones among them.
    fn pages(&self, wanted: impl Fn(&[u8]) -> bool) -> Vec<usize> {
        let pages = self.data.chunks(SLOT_BYTES).enumerate();
        pages.filter(|(_, page)| wanted(page)).map(|(slot, _)| slot).collect()
    }

    /// Heads of runs of a kind, of one page each.
    fn heads(&self, kind: u8) -> Vec<usize> {
        self.pages(|page| {
            let is_alone = u64_at(page, 32) == u64::MAX;
            page.starts_with(b"ONRB")
                && is_alone
                && page[48..].starts_with(&[b'O', b'N', b'R', b'R', kind])
        })
    }

    /// The slots of the images that a head names.
    fn images(&self, head: usize) -> Vec<usize> {
        let content = &self.data[head * SLOT_BYTES + 48..];
        let mut at = 17;
        let varint = |at: &mut usize| {
            let mut number = usize::from(content[*at] & 0x7F);
            let mut shift = 0;
            while content[*at] & 0x80 != 0 {
                *at += 1;
                shift += 7;
                number |= usize::from(content[*at] & 0x7F) << shift;
            }
            *at += 1;
            number
        };
        let [_, _, images] = [(); 3].map(|()| varint(&mut at));
        let image = |_| {
            let low_bytes = varint(&mut at);
            at += low_bytes + 8 + 4;
            u64_at(content, at - 12) as usize
        };
        (0..images).map(image).collect()
    }

    fn first_image(&self, head: usize) -> usize {
        self.images(head)[0]
    }

    /// Changes a blob of one page; whoever names it names the new bytes.
    fn change_blob(&mut self, slot: usize, change: &dyn Fn(&mut [u8])) {
        let page = self.page(slot);
        let length = u32_at(page, 40) as usize;
        assert_eq!(u64_at(page, 32), u64::MAX, "a blob of several pages");
        let place = |content: &[u8]| {
            let mut place = (slot as u64).to_le_bytes().to_vec();
            place.extend_from_slice(&(length as u64).to_le_bytes());
            place.extend_from_slice(&crc32c::crc32c(content).to_le_bytes());
            place
        };
        let old = place(&page[48..48 + length]);
        change(&mut page[48..48 + length]);
        let new = place(&page[48..48 + length]);
        let checksum = crc32c::crc32c(&page[8..]);
        page[4..8].copy_from_slice(&checksum.to_le_bytes());
        self.rename(&old, &new);
        for block in self.superblock.chunks_mut(65_536) {
            if replace(&mut block[..4096], &old, &new) {
                let checksum =
                    crc32c::crc32c_append(crc32c::crc32c(&block[..12]), &block[16..4096]);
                block[12..16].copy_from_slice(&checksum.to_le_bytes());
            }
        }
    }

    /// Changes an image; whoever names it names the new bytes.
    fn change_image(&mut self, slot: usize, change: &dyn Fn(&mut [u8])) {
        let page = self.page(slot);
        let named = |page: &[u8]| [&(slot as u64).to_le_bytes(), &page[4..8]].concat();
        let old = named(page);
        change(page);
        let checksum = crc32c::crc32c(&page[8..]);
        page[4..8].copy_from_slice(&checksum.to_le_bytes());
        let new = named(page);
        self.rename(&old, &new);
    }

    fn rename(&mut self, old: &[u8], new: &[u8]) {
        let holds = |page: &[u8]| {
            page.starts_with(b"ONRB") && page.windows(old.len()).any(|bytes| bytes == old)
        };
        for holder in self.pages(holds) {
            self.change_blob(holder, &|content| {
                replace(content, old, new);
            });
        }
    }
}

/// Plants damage at one place after the other, until one is in use and something is found. The report.
fn planted(
    fixture: &Fixture,
    sound: &Stored,
    places: &[usize],
    plant: &dyn Fn(&mut Stored, usize),
) -> CheckReport {
    for place in places {
        let mut stored = sound.clone();
        plant(&mut stored, *place);
        stored.save(fixture);
        let options = CheckOptions { dop: 1, max_errors: 10_000, ..CheckOptions::default() };
        let report = checked(fixture, &options);
        if !report.findings.is_empty() {
            sound.save(fixture);
            return report;
        }
    }
    panic!("nothing found at any of {} places", places.len());
}

fn invariants(report: &CheckReport) -> Vec<Invariant> {
    let mut found: Vec<_> = report.findings.iter().map(|finding| finding.invariant).collect();
    found.dedup();
    found
}

#[test]
fn each_damage_of_a_run_is_found_under_its_invariant() {
    use Invariant::{
        EntryHolder, ImageWhole, PageWhole, RowDecodes, RowLsn, RunAddsUp, RunHeadDecodes,
        RunKnowsKeys, RunsFit, SlotOwned,
    };
    let fixture = fixture(Background::Callers);
    let (db, table, _) = filled(&fixture);
    drop(table);
    db.close().unwrap();
    let sound = Stored::load(&fixture);
    let (bases, fragments) = (sound.heads(BASE), sound.heads(FRAGMENT));
    let find = |places: &[usize], plant: &dyn Fn(&mut Stored, usize)| {
        let report = planted(&fixture, &sound, places, plant);
        assert!(
            report.findings.iter().all(|finding| finding.offset % SLOT_BYTES as u64 == 0
                || finding.invariant.area() == "rows"),
            "{report}"
        );
        invariants(&report)
    };
    for heads in [&bases, &fragments] {
        let found = find(heads, &|stored, head| {
            let image = stored.first_image(head);
            stored.page(image)[500] ^= 1;
        });
        assert_eq!(found, [ImageWhole]);
        let found = find(heads, &|stored, head| stored.page(head)[60] ^= 1);
        assert_eq!(found, [PageWhole, RunHeadDecodes]);
        let found = find(heads, &|stored, head| stored.change_blob(head, &|head| head[3] = b'S'));
        assert_eq!(found, [RunHeadDecodes]);
        let found = find(heads, &|stored, head| stored.change_blob(head, &|head| head[5] ^= 1));
        assert_eq!(found, [RunHeadDecodes]);
        // The highest LSN.
        let found = find(heads, &|stored, head| stored.change_blob(head, &|head| head[9] ^= 1));
        assert_eq!(found, [RunAddsUp]);
        let found = find(heads, &|stored, head| stored.change_blob(head, &|head| head[15] = 1));
        assert_eq!(found, [RunsFit, RunAddsUp]);
        // An intent of a transaction that there was not, and that the head does not name.
        let found = find(heads, &|stored, head| {
            let image = stored.first_image(head);
            stored.change_image(image, &|page| page[64 + 7] |= 1 << 7);
        });
        assert_eq!(found, [RowLsn, RunAddsUp]);
    }
    let found = find(&bases, &|stored, head| {
        let image = stored.first_image(head);
        stored.change_image(image, &|page| page[64 + 7] |= 1 << 6);
    });
    assert_eq!(found, [RowDecodes, EntryHolder]);
    // The flush LSN of a stock.
    let mark = [&(u64::MAX - 1).to_le_bytes()[..], &[0; 4]].concat();
    let at = |page: &[u8]| page.windows(mark.len()).position(|bytes| bytes == mark);
    let segments = sound.pages(|page| page.starts_with(b"ONRB") && at(page).is_some());
    let found = find(&segments, &|stored, segment| {
        stored.change_blob(segment, &|segment| segment[at(segment).unwrap() + 12 + 6] = 1);
    });
    assert_eq!(found, [RunsFit]);
    // A hash of a fragment.
    let found = find(&fragments, &|stored, head| {
        stored.change_blob(head, &|head| *head.last_mut().unwrap() ^= 1);
    });
    assert_eq!(found, [RunKnowsKeys]);
    // A bit of a filter; there are positions that no key has.
    for bit in 0..10 {
        let found = find(&bases, &|stored, head| {
            stored.change_blob(head, &|head| {
                let middle = head.len() / 2;
                let byte = (middle..).find(|at| head[*at] != 0).unwrap();
                head[byte + bit % 8] &= head[byte + bit % 8].wrapping_sub(1);
                head[byte] &= head[byte] - 1;
            });
        });
        assert_eq!(found, [RunKnowsKeys]);
    }
    // An image that stands twice in a head.
    let found = find(&bases, &|stored, head| {
        let named = |slot: usize| {
            let checksum = &stored.data[slot * SLOT_BYTES + 4..][..4];
            [&(slot as u64).to_le_bytes(), checksum].concat()
        };
        let images = stored.images(head);
        let (old, new) = (named(images[1]), named(images[0]));
        stored.change_blob(head, &|head| {
            replace(head, &old, &new);
        });
    });
    assert!(found.contains(&SlotOwned), "{found:?}");
}

#[test]
fn bases_are_the_oldest_runs() {
    let fixture = fixture(Background::Callers);
    let (db, table, _) = filled(&fixture);
    drop(table);
    db.close().unwrap();
    let sound = Stored::load(&fixture);
    let named = |slot: usize| {
        let page = &sound.data[slot * SLOT_BYTES..][..SLOT_BYTES];
        let length = u32_at(page, 40) as usize;
        let checksum = crc32c::crc32c(&page[48..48 + length]);
        [&(slot as u64).to_le_bytes()[..], &(length as u64).to_le_bytes(), &checksum.to_le_bytes()]
            .concat()
    };
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = sound
        .heads(BASE)
        .iter()
        .flat_map(|base| {
            sound.heads(FRAGMENT).into_iter().map(|fragment| (named(*base), named(fragment)))
        })
        .map(|(base, fragment)| ([&base[..], &fragment].concat(), [&fragment[..], &base].concat()))
        .collect();
    let places: Vec<usize> = (0..pairs.len()).collect();
    let report = planted(&fixture, &sound, &places, &|stored, pair| {
        stored.rename(&pairs[pair].0, &pairs[pair].1);
    });
    assert_eq!(invariants(&report), [Invariant::RunsFit], "{report}");
}

#[test]
fn no_bytes_of_a_head_or_a_segment_make_a_check_panic() {
    let fixture = fixture(Background::Callers);
    let (db, table, _) = filled(&fixture);
    drop(table);
    db.close().unwrap();
    let sound = Stored::load(&fixture);
    let blobs = sound.pages(|page| page.starts_with(b"ONRB") && u64_at(page, 32) == u64::MAX);
    let mut random = Random(5);
    for _ in 0..120 {
        let mut stored = sound.clone();
        let blob = blobs[random.below(blobs.len() as u64) as usize];
        let (at, new) = (random.below(1 << 30) as usize, random.below(256) as u8);
        // Mostly what comes first, where the numbers are.
        let near = if at % 4 == 0 { usize::MAX } else { 60 };
        stored.change_blob(blob, &|content| content[at / 4 % content.len().min(near)] = new);
        stored.save(&fixture);
        checked(&fixture, &CheckOptions::default());
    }
}
