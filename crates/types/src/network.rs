//! Addresses of hosts with the network that they are in (`inet`), and of networks (`cidr`).

use std::cmp::Ordering;
use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of a network in a row; of an `inet`'s address, too.
pub(crate) const NETWORK_BYTES: usize = 18;
/// Bytes of an `inet` in a key: its network, then its address.
pub(crate) const INET_KEY_BYTES: usize = NETWORK_BYTES + 16;

/// An address, and how many of its first bits are those of its network. Ordered as PostgreSQL does: version 4 comes
/// first, then by network, then the wider network first, then by address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    /// The address; of a `cidr` all bits behind its network's are 0.
    pub address: IpAddr,
    /// Bits of the network: up to 32, in version 6 up to 128.
    pub length_bits: u8,
}

impl Network {
    /// Most bits that a network of this version has.
    #[must_use]
    pub fn length_bits_max(self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// Whether there is such an address.
    #[must_use]
    pub fn is_sound(self) -> bool {
        self.length_bits <= self.length_bits_max()
    }

    /// Whether all bits behind the network's are 0, as a `cidr` has them.
    #[must_use]
    pub fn is_network(self) -> bool {
        self.is_sound() && self.network() == self
    }

    /// Ones for the bits of the network, as many as the address has.
    #[must_use]
    pub fn mask(self) -> u128 {
        let free_bits = u32::from(self.length_bits_max() - self.length_bits);
        let all = u128::MAX >> (128 - u32::from(self.length_bits_max()));
        all & u128::MAX.checked_shl(free_bits).unwrap_or(0)
    }

    /// The address as a number.
    #[must_use]
    pub fn bits(self) -> u128 {
        match self.address {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits(),
        }
    }

    /// Another address of the same version and length.
    #[must_use]
    pub fn with_bits(self, bits: u128) -> Network {
        let address = match self.address {
            // As many bits as the mask has.
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        };
        Network { address, ..self }
    }

    /// The network alone.
    #[must_use]
    pub fn network(self) -> Network {
        self.with_bits(self.bits() & self.mask())
    }

    /// Whether `other` is this network or a part of it.
    #[must_use]
    pub fn contains(self, other: Network) -> bool {
        self.address.is_ipv4() == other.address.is_ipv4()
            && self.length_bits <= other.length_bits
            && (self.bits() ^ other.bits()) & self.mask() == 0
    }

    /// The version, the address and the length of the network. Ordered as networks are.
    #[must_use]
    pub fn to_bytes(self) -> [u8; NETWORK_BYTES] {
        let mut bytes = [0; NETWORK_BYTES];
        bytes[0] = if self.address.is_ipv4() { 4 } else { 6 };
        bytes[1..17].copy_from_slice(&self.wide_address());
        bytes[17] = self.length_bits;
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) gave; none of bytes that stand for no address.
    #[must_use]
    pub fn from_bytes(bytes: [u8; NETWORK_BYTES]) -> Option<Network> {
        let [version, wide @ .., length_bits] = bytes;
        let [a, b, c, d, rest @ ..] = wide;
        let address = match version {
            4 if rest == [0; 12] => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            6 => IpAddr::V6(Ipv6Addr::from(wide)),
            _ => return None,
        };
        Some(Network { address, length_bits }).filter(|network| network.is_sound())
    }

    /// The network, then the address: ordered as the values are.
    #[must_use]
    pub fn to_ordered_bytes(self) -> [u8; INET_KEY_BYTES] {
        let mut bytes = [0; INET_KEY_BYTES];
        bytes[..NETWORK_BYTES].copy_from_slice(&self.network().to_bytes());
        bytes[NETWORK_BYTES..].copy_from_slice(&self.wide_address());
        bytes
    }

    /// What [`to_ordered_bytes`](Self::to_ordered_bytes) gave; none of other bytes.
    #[must_use]
    pub fn from_ordered_bytes(bytes: [u8; INET_KEY_BYTES]) -> Option<Network> {
        let (network, address) = bytes.split_at(NETWORK_BYTES);
        let mut own = [0; NETWORK_BYTES];
        own.copy_from_slice(network);
        own[1..17].copy_from_slice(address);
        Network::from_bytes(own).filter(|read| read.network().to_bytes() == *network)
    }

    /// The address, behind one of version 4 zeros.
    fn wide_address(self) -> [u8; 16] {
        match self.address {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96).to_be_bytes(),
            IpAddr::V6(address) => address.octets(),
        }
    }

    /// Reads an `inet`: `10.1.2.3`, `10.1/16`, `2001:db8::1/64`.
    #[must_use]
    pub fn read_inet(text: &str) -> Option<Network> {
        if text.contains(':') {
            return read_version_6(text);
        }
        let (octets, length_bits) = read_octets(text)?;
        let length_bits = match length_bits {
            Some(length_bits) if usize::from(length_bits / 8) > octets.len() => return None,
            Some(length_bits) => length_bits,
            None if octets.len() == 4 => 32,
            None => return None,
        };
        Some(Network { address: address_of(&octets), length_bits })
    }

    /// Reads a `cidr`: an `inet`, or as few numbers as the network needs, `10.1`. Bits behind the network's may be
    /// other than 0: the caller refuses them.
    #[must_use]
    pub fn read_cidr(text: &str) -> Option<Network> {
        if text.contains(':') {
            return read_version_6(text);
        }
        let (octets, length_bits) = read_octets(text)?;
        // As long as networks of the address's class once were, and as its numbers make it.
        let of_class = match octets.first()? {
            240.. => 32,
            224 if octets.len() == 1 => 4,
            224.. => 8,
            192.. => 24,
            128.. => 16,
            _ => 8,
        };
        let written = u8::try_from(octets.len() * 8).ok()?;
        let length_bits = length_bits.unwrap_or(match of_class {
            4 => 4,
            wide => written.max(wide),
        });
        Some(Network { address: address_of(&octets), length_bits })
    }
}

/// Numbers with points between them, and a length.
fn read_octets(text: &str) -> Option<(Vec<u8>, Option<u8>)> {
    let (address, length_bits) = with_length(text, 32)?;
    let octets = address
        .split('.')
        .map(|octet| {
            let is_number = !octet.is_empty() && octet.bytes().all(|digit| digit.is_ascii_digit());
            octet.parse::<u8>().ok().filter(|_| is_number)
        })
        .collect::<Option<Vec<u8>>>()?;
    (octets.len() <= 4).then_some((octets, length_bits))
}

fn read_version_6(text: &str) -> Option<Network> {
    let (address, length_bits) = with_length(text, 128)?;
    let address = IpAddr::V6(address.parse().ok()?);
    Some(Network { address, length_bits: length_bits.unwrap_or(128) })
}

/// What stands before `/`, and the number behind it, if there is one.
fn with_length(text: &str, bits_max: u8) -> Option<(&str, Option<u8>)> {
    let Some((address, length)) = text.split_once('/') else { return Some((text, None)) };
    let is_number = !length.is_empty()
        && length.bytes().all(|digit| digit.is_ascii_digit())
        && (length == "0" || !length.starts_with('0'));
    let bits = length.parse::<u8>().ok().filter(|bits| is_number && *bits <= bits_max)?;
    Some((address, Some(bits)))
}

/// The address that starts with these numbers.
fn address_of(octets: &[u8]) -> IpAddr {
    let mut whole = [0; 4];
    whole[..octets.len()].copy_from_slice(octets);
    IpAddr::V4(whole.into())
}

impl Ord for Network {
    fn cmp(&self, other: &Network) -> Ordering {
        self.to_ordered_bytes().cmp(&other.to_ordered_bytes())
    }
}

impl PartialOrd for Network {
    fn partial_cmp(&self, other: &Network) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Network {
    /// As PostgreSQL writes an `inet`: the length only where it is not that of a single address; with `#` always, as
    /// of a `cidr`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_address(self.address, formatter)?;
        match formatter.alternate() || self.length_bits != self.length_bits_max() {
            true => write!(formatter, "/{}", self.length_bits),
            false => Ok(()),
        }
    }
}

/// Addresses of version 6 that have one of version 4 in them show it.
fn write_address(address: IpAddr, out: &mut impl Write) -> fmt::Result {
    match address {
        IpAddr::V6(address) => match address.segments() {
            [0, 0, 0, 0, 0, 0, high, low] if high != 0 || low > 1 => {
                let [a, b] = high.to_be_bytes();
                let [c, d] = low.to_be_bytes();
                write!(out, "::{}", Ipv4Addr::new(a, b, c, d))
            }
            _ => write!(out, "{address}"),
        },
        IpAddr::V4(address) => write!(out, "{address}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_network() -> impl Strategy<Value = Network> {
        let version_4 = (any::<u32>(), 0..=32u8).prop_map(|(bits, length_bits)| Network {
            address: IpAddr::V4(Ipv4Addr::from_bits(bits)),
            length_bits,
        });
        let version_6 = (any::<u128>(), 0..=128u8).prop_map(|(bits, length_bits)| Network {
            address: IpAddr::V6(Ipv6Addr::from_bits(bits)),
            length_bits,
        });
        prop_oneof![version_4, version_6]
    }

    /// PostgreSQL's order, without the bytes: version, the bits that both networks have, length, address.
    fn by_rules(one: Network, other: Network) -> Ordering {
        let version = one.address.is_ipv6().cmp(&other.address.is_ipv6());
        let common = one.mask() & other.mask();
        version
            .then((one.bits() & common).cmp(&(other.bits() & common)))
            .then(one.length_bits.cmp(&other.length_bits))
            .then(one.bits().cmp(&other.bits()))
    }

    proptest! {
        #[test]
        fn bytes_come_back_and_are_ordered_as_the_addresses(one in any_network(), other in any_network()) {
            prop_assert_eq!(Network::from_bytes(one.to_bytes()), Some(one));
            prop_assert_eq!(Network::from_ordered_bytes(one.to_ordered_bytes()), Some(one));
            prop_assert_eq!(one.cmp(&other), by_rules(one, other));
            let (network, others) = (one.network(), other.network());
            prop_assert_eq!(network.cmp(&others), network.to_bytes().cmp(&others.to_bytes()));
        }

        #[test]
        fn an_address_reads_back_as_it_is_written(one in any_network()) {
            prop_assert_eq!(Network::read_inet(&one.to_string()), Some(one));
            let network = one.network();
            prop_assert_eq!(Network::read_cidr(&format!("{network:#}")), Some(network));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in any::<[u8; NETWORK_BYTES]>()) {
            if let Some(read) = Network::from_bytes(bytes) {
                prop_assert_eq!(read.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn an_inet_without_a_length_has_four_numbers() {
        let written = |text| Network::read_inet(text).map(|network| network.to_string());
        assert_eq!(written("10.1.2.3"), Some("10.1.2.3".to_owned()));
        assert_eq!(written("010.001.2.3/8"), Some("10.1.2.3/8".to_owned()));
        assert_eq!(written("10.1/16"), Some("10.1.0.0/16".to_owned()));
        for refused in [
            "10.1",
            "10/16",
            "1.2.3.4.5",
            "1.2.3.256",
            "1.2.3.4/33",
            "1.2.3.4/08",
            "",
            "1.2.3.4/",
            "::/129",
        ] {
            assert_eq!(written(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_cidr_without_a_length_has_that_of_its_class_or_its_numbers() {
        let written = |text| Network::read_cidr(text).map(|network| format!("{network:#}"));
        for (text, network) in [
            ("10", "10.0.0.0/8"),
            ("10.1", "10.1.0.0/16"),
            ("128.1", "128.1.0.0/16"),
            ("192.168", "192.168.0.0/24"),
            ("192.168.1.1", "192.168.1.1/32"),
            ("224", "224.0.0.0/4"),
            ("240.1", "240.1.0.0/32"),
            ("::1", "::1/128"),
        ] {
            assert_eq!(written(text), Some(network.to_owned()), "{text}");
        }
    }

    #[test]
    fn version_4_inside_of_version_6_is_shown() {
        let written = |text| Network::read_inet(text).map(|network| network.to_string());
        for text in ["::ffff:1.2.3.4", "::1.2.3.4", "::1", "::", "::4:3:2:1", "::0.0.0.2"] {
            assert_eq!(written(text), Some(text.to_owned()));
        }
        assert_eq!(written("2001:DB8:0:0:1:0:0:1/64"), Some("2001:db8::1:0:0:1/64".to_owned()));
    }
}
