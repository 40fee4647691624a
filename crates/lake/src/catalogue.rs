//! Which catalogue a lake table is in, from the configuration file, and the way to it.
//!
//! ```toml
//! [prod]
//! kind = "rest"
//! uri = "https://catalogue.example.com"
//! warehouse = "file:///srv/warehouse"
//! token_variable = "LAKE_TOKEN"
//! [prod.properties]
//! prefix = "main"
//! ```
//!
//! A place for tables that is no catalogue is configured alike: a database that speaks PostgreSQL's
//! protocol.
//!
//! ```toml
//! [warehouse]
//! kind = "postgres"
//! uri = "postgres://drain@db.example.com:5432/warehouse"
//! credential_variable = "WAREHOUSE_PASSWORD"
//! ```
//!
//! Secrets are never in the file: it names environment variables, and the secrets among the
//! properties that a catalogue knows are refused.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use iceberg::memory::{MEMORY_CATALOG_WAREHOUSE, MemoryCatalogBuilder};
use iceberg::{Catalog, CatalogBuilder};
use iceberg_catalog_rest::{
    REST_CATALOG_PROP_URI, REST_CATALOG_PROP_WAREHOUSE, RestCatalogBuilder,
};
use serde::Deserialize;

use crate::catalogue_sql::SqlCatalogue;
use crate::error::LakeError;
use crate::storage::{LakeStorageFactory, is_loopback, scheme_of};
use crate::target::Place;
use crate::wire::Door;

/// A catalogue that does not even take the connection is away.
pub(crate) const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// A request that takes longer is given up, and what it did is asked for by another.
pub(crate) const REQUEST_PATIENCE: Duration = Duration::from_secs(60);
/// The properties of the REST catalogue's client that carry what the variables are for.
const TOKEN_PROPERTY: &str = "token";
const CREDENTIAL_PROPERTY: &str = "credential";
/// The property with the file of certificates to trust, of a database.
const ROOTS_PROPERTY: &str = "sslrootcert";
/// Parts of names of properties that carry secrets.
const SECRET_WORDS: [&str; 6] =
    ["token", "credential", "secret", "password", "authorization", "access-key"];

/// One catalogue of the configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CatalogueConfig {
    /// How it is spoken to.
    pub kind: CatalogueKind,
    /// Where it answers; not for [`CatalogueKind::Memory`].
    #[serde(default)]
    pub uri: Option<String>,
    /// Where tables are, or the name by which the catalogue knows that.
    #[serde(default)]
    pub warehouse: Option<String>,
    /// The environment variable with the bearer token.
    #[serde(default)]
    pub token_variable: Option<String>,
    /// The environment variable with `client:secret`, for which the catalogue gives a token; with
    /// the password for [`CatalogueKind::Sql`] and [`CatalogueKind::Postgres`].
    #[serde(default)]
    pub credential_variable: Option<String>,
    /// Takes a catalogue or a store elsewhere than on this machine without TLS.
    #[serde(default)]
    pub allow_plain_text: bool,
    /// What else its client takes, such as `prefix`, `scope` or `oauth2-server-uri`, and the store's,
    /// such as `s3.endpoint`, `s3.region` or `s3.path-style-access`. The store's secrets come from
    /// the variables that S3's own tools read, or from the catalogue.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
}

/// How a catalogue is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CatalogueKind {
    /// Iceberg's REST protocol.
    Rest,
    /// Iceberg's tables in a database that speaks PostgreSQL's protocol: see
    /// [`catalogue_sql`](crate::catalogue_sql).
    Sql,
    /// No catalogue: the tables are in a database that speaks PostgreSQL's protocol.
    Postgres,
    /// In this process, which forgets its tables with its end; the files stay. For tests.
    Memory,
}

impl CatalogueConfig {
    /// Where the tables are, which `name` stands for in messages. Nothing is asked of it yet.
    pub(crate) async fn place(&self, name: &str) -> Result<Place, LakeError> {
        if self.kind != CatalogueKind::Postgres {
            return Ok(Place::Catalogue(self.connect(name).await?));
        }
        let door = self.checked_properties().and_then(|mut properties| {
            if self.warehouse.is_some() {
                return Err("it has no warehouse: its tables are in the database".to_owned());
            }
            let door = self.door(&mut properties)?;
            match properties.keys().next() {
                None => Ok(door),
                Some(key) => Err(format!("it has no property {key}")),
            }
        });
        let refuse = |cause| LakeError::NoSuchCatalogue { name: name.to_owned(), cause };
        Ok(Place::Database(Arc::new(door.map_err(refuse)?)))
    }

    /// The way to the database, with what the properties say of it, which is taken out.
    pub(crate) fn door(&self, properties: &mut HashMap<String, String>) -> Result<Door, String> {
        let uri = self.uri.as_deref().ok_or("it needs a uri")?;
        if self.token_variable.is_some() {
            return Err("it takes no token; its password is in credential_variable".to_owned());
        }
        let password = properties.remove(CREDENTIAL_PROPERTY);
        let roots = properties.remove(ROOTS_PROPERTY);
        Door::new(uri, password, self.allow_plain_text, roots.as_deref())
    }

    /// The catalogue, which `name` stands for in messages. Nothing is asked of it yet, so one that
    /// is away shows with the first call. To be called on the runtime that the calls run on.
    ///
    /// # Errors
    /// [`LakeError::NoSuchCatalogue`] says what is wrong with the configuration.
    pub async fn connect(&self, name: &str) -> Result<Arc<dyn Catalog>, LakeError> {
        let refuse = |cause: String| LakeError::NoSuchCatalogue { name: name.to_owned(), cause };
        let mut properties = self.checked_properties().map_err(refuse)?;
        if let Some(scheme) = self.warehouse.as_deref().and_then(unknown_scheme) {
            return Err(refuse(format!(
                "stores of scheme {scheme} are not built in; file and s3 are"
            )));
        }
        let storage = Arc::new(LakeStorageFactory { allow_plain_text: self.allow_plain_text });
        match self.kind {
            CatalogueKind::Rest => {
                let Some(uri) = &self.uri else {
                    return Err(refuse("it needs a uri".to_owned()));
                };
                let uri = uri.trim_end_matches('/');
                let client = self.client(uri).map_err(refuse)?;
                properties.insert(REST_CATALOG_PROP_URI.to_owned(), uri.to_owned());
                if let Some(warehouse) = &self.warehouse {
                    properties.insert(REST_CATALOG_PROP_WAREHOUSE.to_owned(), warehouse.to_owned());
                }
                let builder =
                    RestCatalogBuilder::default().with_storage_factory(storage).with_client(client);
                let catalogue = builder.load(name, properties).await;
                Ok(Arc::new(catalogue.map_err(|cause| refuse(cause.to_string()))?))
            }
            CatalogueKind::Memory => {
                let Some(warehouse) = &self.warehouse else {
                    return Err(refuse("it needs a warehouse".to_owned()));
                };
                properties.insert(MEMORY_CATALOG_WAREHOUSE.to_owned(), warehouse.to_owned());
                let builder = MemoryCatalogBuilder::default().with_storage_factory(storage);
                let catalogue = builder.load(name, properties).await;
                Ok(Arc::new(catalogue.map_err(|cause| refuse(cause.to_string()))?))
            }
            CatalogueKind::Postgres => {
                Err(refuse("it is a database with tables, and no catalogue".to_owned()))
            }
            CatalogueKind::Sql => {
                let catalogue = SqlCatalogue::new(name, self, properties, storage);
                Ok(Arc::new(catalogue.map_err(refuse)?))
            }
        }
    }

    /// The properties, with the secrets that the named variables hold.
    fn checked_properties(&self) -> Result<HashMap<String, String>, String> {
        let CatalogueConfig { properties, token_variable, credential_variable, .. } = self;
        for key in properties.keys() {
            let lowered = key.to_ascii_lowercase();
            if SECRET_WORDS.iter().any(|word| lowered.contains(word)) {
                return Err(format!(
                    "property {key} looks like a secret. Secrets come from the environment: name \
                     the variable as token_variable or credential_variable"
                ));
            }
        }
        let mut all: HashMap<String, String> =
            properties.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let secrets =
            [(TOKEN_PROPERTY, token_variable), (CREDENTIAL_PROPERTY, credential_variable)];
        for (property, variable) in secrets {
            let Some(variable) = variable else { continue };
            let secret = std::env::var(variable)
                .map_err(|cause| format!("environment variable {variable}: {cause}"))?;
            all.insert(property.to_owned(), secret);
        }
        Ok(all)
    }

    fn client(&self, uri: &str) -> Result<reqwest::Client, String> {
        let url = reqwest::Url::parse(uri).map_err(|cause| format!("its uri {uri}: {cause}"))?;
        let has_tls = url.scheme() == "https";
        if !has_tls && !self.allow_plain_text && !is_loopback(url.host_str().unwrap_or_default()) {
            return Err(format!(
                "its uri {uri} is elsewhere and without TLS. Use https, or set allow_plain_text"
            ));
        }
        reqwest::Client::builder()
            .connect_timeout(CONNECT_PATIENCE)
            .timeout(REQUEST_PATIENCE)
            .tls_built_in_root_certs(has_tls)
            .build()
            .map_err(|cause| format!("its client cannot be made: {cause}"))
    }
}

/// What stands in front of `://`, if no store is built in for it. A name without may be a path, or
/// one that only the catalogue understands.
fn unknown_scheme(warehouse: &str) -> Option<&str> {
    let (scheme, _) = warehouse.split_once("://")?;
    scheme_of(warehouse).is_none().then_some(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<CatalogueConfig, toml::de::Error> {
        toml::from_str(text)
    }

    async fn refused(text: &str) -> String {
        match parse(text).unwrap().connect("prod").await {
            Err(LakeError::NoSuchCatalogue { name, cause }) => {
                assert_eq!(name, "prod");
                cause
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn what_is_configured_connects() {
        let rest = "kind = 'rest'\nuri = 'http://127.0.0.1:1/'\nwarehouse = 'main'\n\
                    properties = { prefix = 'p' }";
        parse(rest).unwrap().connect("prod").await.unwrap();
        let tls = "kind = 'rest'\nuri = 'https://catalogue.example.com'";
        parse(tls).unwrap().connect("prod").await.unwrap();
        let memory = "kind = 'memory'\nwarehouse = 'file:///tmp/nowhere'";
        parse(memory).unwrap().connect("prod").await.unwrap();
        let sql = "kind = 'sql'\nuri = 'postgres://u@127.0.0.1:1/c'\ncredential_variable = 'PATH'";
        parse(sql).unwrap().connect("prod").await.unwrap();
    }

    #[tokio::test]
    async fn a_database_is_a_place_and_no_catalogue() {
        let place = "kind = 'postgres'\nuri = 'postgres://u@127.0.0.1:1/c'\n";
        assert!(matches!(parse(place).unwrap().place("prod").await, Ok(Place::Database(_))));
        assert!(refused(place).await.contains("no catalogue"));
        let place = async |more: &str| {
            let config = parse(&format!("{place}{more}")).unwrap();
            config.place("prod").await.err().unwrap().to_string()
        };
        assert!(place("warehouse = 's3://b'").await.contains("warehouse"));
        assert!(place("token_variable = 'PATH'").await.contains("token"));
        assert!(place("properties = { prefix = 'p' }").await.contains("prefix"));
    }

    #[tokio::test]
    async fn what_cannot_be_says_why() {
        assert!(refused("kind = 'rest'").await.contains("uri"));
        assert!(refused("kind = 'memory'").await.contains("warehouse"));
        assert!(refused("kind = 'sql'\nuri = 'x'").await.contains("postgres://"));
        let elsewhere = "kind = 'sql'\nuri = 'postgres://u@db.example.com/c?sslmode=disable'";
        assert!(refused(elsewhere).await.contains("TLS"));
        let told = refused("kind = 'sql'\nuri = 'postgres://u:hidden@127.0.0.1/c'").await;
        assert!(told.contains("password") && !told.contains("hidden"));
        assert!(refused("kind = 'memory'\nwarehouse = 'gs://b'").await.contains("scheme gs"));
        assert!(refused("kind = 'rest'\nuri = 'http://example.com'").await.contains("TLS"));
        assert!(parse("kind = 'other'").is_err());
        assert!(parse("kind = 'memory'\nwarehose = 'x'").is_err());
    }

    #[tokio::test]
    async fn secrets_come_from_the_environment() {
        let rest = "kind = 'rest'\nuri = 'http://127.0.0.1:1'\n";
        for name in ["token", "credential", "s3.secret-access-key", "header.Authorization"] {
            let text = format!("{rest}properties = {{ '{name}' = 'x' }}");
            assert!(refused(&text).await.contains("secret"), "{name}");
        }
        let text = format!("{rest}token_variable = 'NO_SUCH_VARIABLE_OF_THE_LAKE'");
        assert!(refused(&text).await.contains("NO_SUCH_VARIABLE"));
        let properties = parse("kind = 'rest'\ntoken_variable = 'PATH'").unwrap();
        assert!(properties.checked_properties().unwrap().contains_key("token"));
    }
}
