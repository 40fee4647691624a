//! Types of columns as bytes: a number, and what it needs beside.

use super::{Input, labels, push_short, push_u16};
use crate::composite::DEPTH_MAX;
use crate::rounding;
use crate::{CompositeType, DataType, EnumType, FIELDS_MAX};

pub(super) fn push_type(data_type: DataType, out: &mut Vec<u8>) {
    match data_type {
        DataType::Boolean => out.push(1),
        DataType::Int16 => out.push(2),
        DataType::Int32 => out.push(3),
        DataType::Int64 => out.push(4),
        DataType::Float32 => out.push(5),
        DataType::Float64 => out.push(6),
        DataType::Decimal { precision, scale } => out.extend_from_slice(&[7, precision, scale]),
        DataType::Char(length) => {
            out.push(8);
            out.extend_from_slice(&length.to_le_bytes());
        }
        DataType::Varchar(length) => match u16::try_from(length) {
            Ok(length) => {
                out.push(9);
                out.extend_from_slice(&length.to_le_bytes());
            }
            Err(_) => {
                out.push(28);
                out.extend_from_slice(&length.to_le_bytes());
            }
        },
        DataType::Text => out.push(10),
        DataType::Bytes => out.push(11),
        DataType::Uuid => out.push(12),
        DataType::Date => out.push(13),
        DataType::Time => out.push(14),
        DataType::Timestamp => out.push(15),
        DataType::TimestampTz => out.push(16),
        DataType::Json => out.push(17),
        DataType::Jsonb => out.push(18),
        DataType::Interval => out.push(19),
        DataType::Name => out.push(21),
        DataType::Oid => out.push(22),
        DataType::TimeTz => out.push(23),
        DataType::Inet => out.push(29),
        DataType::Cidr => out.push(30),
        DataType::MacAddress => out.push(31),
        DataType::Rounded(clock, digits) => {
            out.push(20);
            rounding::push(clock, digits, out);
        }
        DataType::Enum(of) => {
            out.push(26);
            out.extend_from_slice(&of.id().to_le_bytes());
            push_short(of.name().as_bytes(), out);
            labels::push(of.labels(), out);
        }
        DataType::Composite(of) => {
            out.push(32);
            out.extend_from_slice(&of.id().to_le_bytes());
            push_short(of.name().as_bytes(), out);
            push_u16(of.fields().len(), out);
            for (name, data_type) in of.fields() {
                push_short(name.as_bytes(), out);
                push_type(*data_type, out);
            }
        }
        DataType::Array(element) => {
            out.push(27);
            push_type(*element, out);
        }
        DataType::Numeric(None) => out.push(24),
        DataType::Numeric(Some((precision, scale))) => {
            out.push(25);
            out.extend_from_slice(&precision.to_le_bytes());
            out.extend_from_slice(&scale.to_le_bytes());
        }
    }
}

pub(super) fn read_type(input: &mut Input<'_>) -> Result<DataType, &'static str> {
    read_nested(input, 0)
}

fn read_nested(input: &mut Input<'_>, depth: u32) -> Result<DataType, &'static str> {
    match input.u8()? {
        27 => {
            let tag = input.u8()?;
            let element = read_element(tag, input)?;
            element.array().ok_or("an array is of elements that it cannot have")
        }
        32 if depth == DEPTH_MAX => Err("composite types are too deep inside of each other"),
        32 => {
            let (id, name) = (input.u32()?, input.name()?);
            let count = usize::from(input.u16()?);
            if count > FIELDS_MAX {
                return Err("a composite type has too many fields");
            }
            let mut fields = Vec::new();
            for _ in 0..count {
                let name = input.name()?;
                fields.push((name.into(), read_nested(input, depth + 1)?));
            }
            Ok(DataType::Composite(CompositeType::new(id, &name, fields)))
        }
        tag => read_element(tag, input),
    }
}

/// A type that is neither an array nor composite, behind its tag.
fn read_element(tag: u8, input: &mut Input<'_>) -> Result<DataType, &'static str> {
    let data_type = match tag {
        1 => DataType::Boolean,
        2 => DataType::Int16,
        3 => DataType::Int32,
        4 => DataType::Int64,
        5 => DataType::Float32,
        6 => DataType::Float64,
        7 => DataType::Decimal { precision: input.u8()?, scale: input.u8()? },
        8 => DataType::Char(input.u16()?),
        9 => DataType::Varchar(input.u16()?.into()),
        28 => DataType::Varchar(input.u32()?),
        10 => DataType::Text,
        11 => DataType::Bytes,
        12 => DataType::Uuid,
        13 => DataType::Date,
        14 => DataType::Time,
        15 => DataType::Timestamp,
        16 => DataType::TimestampTz,
        17 => DataType::Json,
        18 => DataType::Jsonb,
        19 => DataType::Interval,
        21 => DataType::Name,
        22 => DataType::Oid,
        23 => DataType::TimeTz,
        29 => DataType::Inet,
        30 => DataType::Cidr,
        31 => DataType::MacAddress,
        20 => rounding::read_type(input.u8()?, input.u8()?, || input.u8())?,
        24 => DataType::Numeric(None),
        25 => DataType::Numeric(Some((input.u16()?, input.u16()?.cast_signed()))),
        26 => {
            let (id, name) = (input.u32()?, input.name()?);
            DataType::Enum(EnumType::new(id, &name, &labels::read(input)?))
        }
        _ => return Err("a type is not known"),
    };
    // Before the constant default, whose reader relies on a sound type.
    data_type.fault().map_or(Ok(data_type), Err)
}
