//! Where a long command serves its statistics.

use std::net::{SocketAddr, ToSocketAddrs};

use clap::Args;

use crate::failure::usage_error;

/// The page for Prometheus.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Statistics for others")]
pub struct MetricsArguments {
    /// Serve the statistics for Prometheus over HTTP as long as a database of Onrush is open, on an
    /// address such as 127.0.0.1:9187
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
    /// Let --metrics be an address that other machines reach: whoever reaches it reads everything
    #[arg(long, requires = "metrics")]
    metrics_public: bool,
}

impl MetricsArguments {
    /// The address, if one was given; one that other machines reach only where that is wanted.
    pub fn address(&self) -> anyhow::Result<Option<SocketAddr>> {
        let Some(given) = &self.metrics else { return Ok(None) };
        let found = given.to_socket_addrs().map_err(|error| {
            usage_error(format!("--metrics {given}: {error}; give host and port: 127.0.0.1:9187"))
        })?;
        let found: Vec<SocketAddr> = found.collect();
        let Some(address) = found.first() else {
            return Err(usage_error(format!("--metrics {given}: this name has no address")));
        };
        let is_public = found.iter().any(|one| !one.ip().is_loopback());
        if is_public && !self.metrics_public {
            return Err(usage_error(format!(
                "--metrics {given}: other machines may reach this address, and the page asks nobody \
                 for a password; give 127.0.0.1:{}, or --metrics-public as well",
                address.port()
            )));
        }
        Ok(Some(*address))
    }

    /// The same for a command that opens one database after another: the port must be a known one.
    pub fn address_of_many(&self) -> anyhow::Result<Option<SocketAddr>> {
        match self.address()? {
            Some(address) if address.port() == 0 => Err(usage_error(
                "--metrics with port 0: each case would choose another; give a port, such as 9187",
            )),
            address => Ok(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(metrics: &str, metrics_public: bool) -> Result<Option<SocketAddr>, String> {
        let arguments = MetricsArguments { metrics: Some(metrics.to_owned()), metrics_public };
        arguments.address().map_err(|error| error.to_string())
    }

    #[test]
    fn only_this_machine_reaches_the_page_unless_told_otherwise() {
        assert_eq!(MetricsArguments::default().address().unwrap(), None);
        assert_eq!(address("127.0.0.1:91", false), Ok(Some(([127, 0, 0, 1], 91).into())));
        assert_eq!(address("[::1]:91", false), Ok(Some("[::1]:91".parse().unwrap())));
        for public in ["0.0.0.0:91", "10.0.0.7:91", "[::]:91"] {
            let refused = address(public, false).unwrap_err();
            assert!(refused.contains("--metrics-public") && refused.contains(public), "{refused}");
            assert!(address(public, true).unwrap().is_some(), "{public}");
        }
    }

    #[test]
    fn an_address_without_a_port_is_refused_with_an_example() {
        let refused = address("127.0.0.1", false).unwrap_err();
        assert!(refused.contains("127.0.0.1:9187"), "{refused}");
    }
}
