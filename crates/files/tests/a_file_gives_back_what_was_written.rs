//! Whatever is written, aligned or not, in any size, at any position, by any kind of write, is read
//! back; on every disk.

mod common;

use onrush_files::{AlignedBuffer, DiskErrorKind, OpenMode};

#[test]
fn writes_of_all_shapes_read_back() {
    for place in common::places("writes") {
        let path = place.folder.join("file");
        let file = place.disk.open(&path, OpenMode::CreateNew).unwrap();
        let mut model = vec![0_u8; 100_000];
        let shapes = [(0, 4096), (4096, 8192), (1, 10), (4090, 12), (20_480, 40_960), (99_999, 1)];
        for (number, (offset, len)) in shapes.into_iter().enumerate() {
            let mut buffer = AlignedBuffer::new(len);
            let byte = u8::try_from(number + 1).unwrap();
            buffer[..len].fill(byte);
            let bytes = &buffer[..len];
            let position = u64::try_from(offset).unwrap();
            if number % 2 == 0 {
                file.write_at(bytes, position).unwrap();
            } else {
                file.write_at_durable(bytes, position).unwrap();
            }
            model[offset..offset + len].fill(byte);
        }
        file.sync().unwrap();
        let again = place.disk.open(&path, OpenMode::ReadOnly).unwrap();
        assert_eq!(again.len().unwrap(), 100_000);
        let mut buffer = AlignedBuffer::new(98_304);
        again.read_at(&mut buffer, 0).unwrap(); // aligned
        assert_eq!(&buffer[..], &model[..98_304]);
        let mut bytes = vec![9; 99_993];
        again.read_at(&mut bytes, 7).unwrap(); // not aligned
        assert_eq!(bytes, model[7..]);
    }
}

#[test]
fn a_read_past_the_end_is_an_error_and_not_a_short_read() {
    for place in common::places("past-end") {
        let file = place.disk.open(&place.folder.join("file"), OpenMode::CreateNew).unwrap();
        file.write_at(&[1; 5000], 0).unwrap();
        let mut buffer = AlignedBuffer::new(8192);
        let error = file.read_at(&mut buffer, 0).unwrap_err();
        assert_eq!(error.kind(), DiskErrorKind::EndOfFile);
        assert_eq!(file.read_at(&mut [0; 1], 5000).unwrap_err().kind(), DiskErrorKind::EndOfFile);
        file.read_at(&mut [], 5000).unwrap();
    }
}

#[test]
fn reserved_and_added_space_is_zeros() {
    for place in common::places("zeros") {
        let file = place.disk.open(&place.folder.join("file"), OpenMode::CreateNew).unwrap();
        file.write_at(&[1; 100], 0).unwrap();
        file.allocate(10_000).unwrap();
        assert_eq!(file.len().unwrap(), 10_000);
        file.allocate(50).unwrap();
        assert_eq!(file.len().unwrap(), 10_000, "a longer file keeps its length");
        file.set_len(50).unwrap();
        file.set_len(20_000).unwrap();
        let mut bytes = vec![9; 20_000];
        file.read_at(&mut bytes, 0).unwrap();
        assert!(bytes[..50].iter().all(|byte| *byte == 1));
        assert!(bytes[50..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_file_opened_for_reading_is_not_written() {
    for place in common::places("read-only") {
        let path = place.folder.join("file");
        place.disk.open(&path, OpenMode::CreateNew).unwrap();
        let file = place.disk.open(&path, OpenMode::ReadOnly).unwrap();
        assert_eq!(file.write_at(b"x", 0).unwrap_err().kind(), DiskErrorKind::ReadOnly);
        assert_eq!(file.write_at_durable(b"x", 0).unwrap_err().kind(), DiskErrorKind::ReadOnly);
        assert_eq!(file.set_len(1).unwrap_err().kind(), DiskErrorKind::ReadOnly);
        assert_eq!(file.allocate(1).unwrap_err().kind(), DiskErrorKind::ReadOnly);
        assert_eq!(file.len().unwrap(), 0);
    }
}

#[test]
fn a_position_that_no_file_can_have_is_refused() {
    for place in common::places("far") {
        let file = place.disk.open(&place.folder.join("file"), OpenMode::CreateNew).unwrap();
        let error = file.write_at(b"xx", u64::MAX).unwrap_err();
        assert_eq!(error.kind(), DiskErrorKind::Full);
        assert_eq!(file.len().unwrap(), 0);
    }
}
