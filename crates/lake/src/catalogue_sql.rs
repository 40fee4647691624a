//! Iceberg's tables in a database that speaks PostgreSQL's protocol: PostgreSQL, or Onrush.
//!
//! ```toml
//! [prod]
//! kind = "sql"
//! uri = "postgres://drain@db.example.com:5432/catalogue"
//! warehouse = "file:///srv/warehouse"
//! credential_variable = "LAKE_PASSWORD"
//! [prod.properties]
//! catalog_name = "prod"
//! sslrootcert = "/etc/ssl/db.pem"
//! ```
//!
//! The catalogue is two tables, `iceberg_tables` and `iceberg_namespace_properties`. PyIceberg's
//! `SqlCatalog`, iceberg-rust's and Java's `JdbcCatalog` have the same ones, so all of them share
//! the Iceberg tables. One database holds several catalogues, told apart by `catalog_name`. That is
//! the name in the configuration, `prod` here, as in PyIceberg's `load_catalog("prod")`, unless the
//! property `catalog_name` gives another. The tables are made with the first connection, if they
//! are missing.
//!
//! The environment variable that `credential_variable` names holds the password. A server elsewhere
//! than on this machine is spoken to with TLS only, and its certificate checked, unless
//! `allow_plain_text` is set. `sslrootcert` names a PEM file with what is trusted instead of what
//! the system trusts. New tables go to the property `location` of their namespace, or below the
//! warehouse.
//!
//! A namespace with levels is their names with dots between. It exists if it has a property, a
//! table, or a namespace below it, as in PyIceberg.
//!
//! Invariants
//! 1. A commit is one `UPDATE`, which replaces the location of the metadata that the commit was
//!    checked against, or nothing. It is sent once. An `UPDATE` that is executed late, after its
//!    client gave up, is held to the same.
//! 2. Metadata that a table may point to is complete and never changes: a file is written under a
//!    fresh name before a row points to it, and is left where it is if the row then does not.
//! 3. An error of kind [`ErrorKind::CatalogCommitConflicts`] means that nothing was committed. All
//!    other errors of a commit are final, and the caller loads the table to see what happened.
//! 4. Each statement is a transaction of its own, so there is nothing to undo when the connection
//!    is lost, and the next request makes a new one.

mod session;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use iceberg::io::{FileIO, FileIOBuilder, StorageFactory};
use iceberg::spec::{TableMetadata, TableMetadataBuilder};
use iceberg::table::Table;
use iceberg::{
    Catalog, Error, ErrorKind, MetadataLocation, Namespace, NamespaceIdent, Result, Runtime,
    TableCommit, TableCreation, TableIdent,
};

use crate::catalogue::CatalogueConfig;
use crate::wire::Failure;
use session::{IS_TABLE, Sessions, TYPE_COLUMN, TYPE_VALUE};

/// The property with the name under which the database knows the catalogue.
const NAME_PROPERTY: &str = "catalog_name";
/// The property of a namespace with the folder of its tables.
const LOCATION_PROPERTY: &str = "location";
/// The property that each namespace has, so that one without others exists.
const EXISTS_PROPERTY: &str = "exists";

/// See the module.
pub(crate) struct SqlCatalogue {
    /// In the column `catalog_name`.
    name: String,
    warehouse: Option<String>,
    sessions: Sessions,
    files: FileIO,
    runtime: Runtime,
}

impl fmt::Debug for SqlCatalogue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SqlCatalogue").field("name", &self.name).finish_non_exhaustive()
    }
}

impl SqlCatalogue {
    /// The catalogue of the configuration's name, properties and password among them. Connects to
    /// nothing yet.
    pub(crate) fn new(
        name: &str,
        config: &CatalogueConfig,
        mut properties: HashMap<String, String>,
        storage: Arc<dyn StorageFactory>,
    ) -> std::result::Result<SqlCatalogue, String> {
        let door = config.door(&mut properties)?;
        let name = properties.remove(NAME_PROPERTY).unwrap_or_else(|| name.to_owned());
        let warehouse = config.warehouse.as_deref();
        Ok(SqlCatalogue {
            name,
            warehouse: warehouse.map(|place| place.trim_end_matches('/').to_owned()),
            sessions: Sessions::new(door),
            files: FileIOBuilder::new(storage).with_props(properties).build(),
            runtime: Runtime::try_current().map_err(|cause| cause.to_string())?,
        })
    }

    /// The namespace and all below it, or all there are; those among them that have properties or
    /// tables.
    async fn names(&self, namespace: Option<&NamespaceIdent>) -> Result<Vec<String>> {
        let own = namespace.map(text).unwrap_or_default();
        let prefix = namespace.map(|_| format!("{own}.")).unwrap_or_default();
        let rows = self
            .sessions
            .query(
                "SELECT table_namespace FROM iceberg_tables WHERE catalog_name = $1 \
                 AND (table_namespace = $2 OR starts_with(table_namespace, $3)) \
                 UNION SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = $1 \
                 AND (namespace = $2 OR starts_with(namespace, $3))",
                &[&self.name, &own, &prefix],
            )
            .await?;
        rows.iter().map(|row| row.try_get(0).map_err(unreadable)).collect()
    }

    async fn check_namespace(&self, namespace: &NamespaceIdent) -> Result<()> {
        if self.namespace_exists(namespace).await? {
            return Ok(());
        }
        let cause = format!("there is no namespace {}", text(namespace));
        Err(Error::new(ErrorKind::NamespaceNotFound, cause))
    }

    /// Where the table's metadata is; `None` if there is no such table.
    async fn location(&self, table: &TableIdent) -> Result<Option<String>> {
        let statement = format!(
            "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = $1 \
             AND table_namespace = $2 AND table_name = $3 AND {IS_TABLE}"
        );
        let values: [&str; 3] = [&self.name, &text(table.namespace()), table.name()];
        let rows = self.sessions.query(&statement, &values).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        match row.try_get::<_, Option<String>>(0).map_err(unreadable)? {
            Some(location) => Ok(Some(location)),
            None => {
                let cause = format!("the row of table {table} has no metadata_location");
                Err(Error::new(ErrorKind::DataInvalid, cause))
            }
        }
    }

    /// The row of a new table.
    async fn insert(&self, table: &TableIdent, location: &str) -> Result<()> {
        let statement = format!(
            "INSERT INTO iceberg_tables \
             (catalog_name, table_namespace, table_name, metadata_location{TYPE_COLUMN}) \
             VALUES ($1, $2, $3, $4{TYPE_VALUE})"
        );
        let namespace = text(table.namespace());
        let values: [&str; 4] = [&self.name, &namespace, table.name(), location];
        match self.sessions.execute(&statement, &values).await {
            Ok(_) => Ok(()),
            Err(failure) if failure.is_duplicate() => Err(already_there(table)),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Writes properties of a namespace, each over the one that it has.
    async fn write_properties(
        &self,
        namespace: &NamespaceIdent,
        properties: &BTreeMap<String, String>,
        on_conflict: &str,
    ) -> std::result::Result<(), Failure> {
        let namespace = text(namespace);
        let mut values: Vec<&str> = vec![&self.name, &namespace];
        let mut rows = Vec::with_capacity(properties.len());
        for (key, value) in properties {
            rows.push(format!("($1, $2, ${}, ${})", values.len() + 1, values.len() + 2));
            values.extend([key.as_str(), value]);
        }
        let statement = format!(
            "INSERT INTO iceberg_namespace_properties \
             (catalog_name, namespace, property_key, property_value) VALUES {}{on_conflict}",
            rows.join(", ")
        );
        self.sessions.execute(&statement, &values).await.map(|_| ())
    }

    /// Where a new table goes that does not say it.
    async fn place(&self, namespace: &NamespaceIdent, name: &str) -> Result<String> {
        let properties = self.get_namespace(namespace).await?;
        if let Some(place) = properties.properties().get(LOCATION_PROPERTY) {
            return Ok(format!("{}/{name}", place.trim_end_matches('/')));
        }
        let Some(warehouse) = &self.warehouse else {
            let cause = "a new table has no place: configure a warehouse";
            return Err(Error::new(ErrorKind::PreconditionFailed, cause));
        };
        Ok(format!("{warehouse}/{}/{name}", namespace.join("/")))
    }

    fn table(
        &self,
        identifier: &TableIdent,
        location: String,
        metadata: TableMetadata,
    ) -> Result<Table> {
        Table::builder()
            .identifier(identifier.clone())
            .metadata_location(location)
            .metadata(metadata)
            .file_io(self.files.clone())
            .runtime(self.runtime.clone())
            .build()
    }
}

fn text(namespace: &NamespaceIdent) -> String {
    namespace.join(".")
}

fn unreadable(cause: tokio_postgres::Error) -> Error {
    Error::new(ErrorKind::DataInvalid, "the catalogue's tables have other columns")
        .with_source(cause)
}

fn not_there(table: &TableIdent) -> Error {
    Error::new(ErrorKind::TableNotFound, format!("there is no table {table}"))
}

fn already_there(table: &TableIdent) -> Error {
    Error::new(ErrorKind::TableAlreadyExists, format!("there is a table or view {table} already"))
}

/// With the property that makes the namespace exist.
fn with_existence(properties: HashMap<String, String>) -> BTreeMap<String, String> {
    let mut properties: BTreeMap<String, String> = properties.into_iter().collect();
    properties.entry(EXISTS_PROPERTY.to_owned()).or_insert_with(|| "true".to_owned());
    properties
}

#[async_trait]
impl Catalog for SqlCatalogue {
    async fn list_namespaces(
        &self,
        parent: Option<&NamespaceIdent>,
    ) -> Result<Vec<NamespaceIdent>> {
        let names = self.names(parent).await?;
        if let (Some(parent), true) = (parent, names.is_empty()) {
            let cause = format!("there is no namespace {}", text(parent));
            return Err(Error::new(ErrorKind::NamespaceNotFound, cause));
        }
        let depth = parent.map_or(0, |parent| text(parent).split('.').count()) + 1;
        let children: BTreeSet<Vec<&str>> = names
            .iter()
            .map(|name| name.split('.').take(depth).collect::<Vec<&str>>())
            .filter(|levels| levels.len() == depth)
            .collect();
        children.into_iter().map(NamespaceIdent::from_strs).collect()
    }

    async fn create_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> Result<Namespace> {
        let already_there = || {
            let cause = format!("there is a namespace {} already", text(namespace));
            Error::new(ErrorKind::NamespaceAlreadyExists, cause)
        };
        if self.namespace_exists(namespace).await? {
            return Err(already_there());
        }
        let properties = with_existence(properties);
        match self.write_properties(namespace, &properties, "").await {
            Ok(()) => {}
            Err(failure) if failure.is_duplicate() => return Err(already_there()),
            Err(failure) => return Err(failure.into()),
        }
        Ok(Namespace::with_properties(namespace.clone(), properties.into_iter().collect()))
    }

    async fn get_namespace(&self, namespace: &NamespaceIdent) -> Result<Namespace> {
        self.check_namespace(namespace).await?;
        let rows = self
            .sessions
            .query(
                "SELECT property_key, property_value FROM iceberg_namespace_properties \
                 WHERE catalog_name = $1 AND namespace = $2",
                &[&self.name, &text(namespace)],
            )
            .await?;
        let mut properties = HashMap::with_capacity(rows.len());
        for row in rows {
            let key = row.try_get(0).map_err(unreadable)?;
            // iceberg-rust makes the column such that it may be NULL.
            let value: Option<String> = row.try_get(1).map_err(unreadable)?;
            properties.insert(key, value.unwrap_or_default());
        }
        Ok(Namespace::with_properties(namespace.clone(), properties))
    }

    async fn namespace_exists(&self, namespace: &NamespaceIdent) -> Result<bool> {
        Ok(!self.names(Some(namespace)).await?.is_empty())
    }

    /// Two statements: if the second does not come about, properties are left that were to go.
    async fn update_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> Result<()> {
        self.check_namespace(namespace).await?;
        let properties = with_existence(properties);
        let replace = " ON CONFLICT (catalog_name, namespace, property_key) \
                       DO UPDATE SET property_value = excluded.property_value";
        self.write_properties(namespace, &properties, replace).await?;
        let namespace = text(namespace);
        let mut values: Vec<&str> = vec![&self.name, &namespace];
        values.extend(properties.keys().map(String::as_str));
        let kept: Vec<String> = (3..=values.len()).map(|number| format!("${number}")).collect();
        let statement = format!(
            "DELETE FROM iceberg_namespace_properties WHERE catalog_name = $1 \
             AND namespace = $2 AND property_key NOT IN ({})",
            kept.join(", ")
        );
        self.sessions.execute(&statement, &values).await?;
        Ok(())
    }

    async fn drop_namespace(&self, namespace: &NamespaceIdent) -> Result<()> {
        self.check_namespace(namespace).await?;
        let refuse = |what: &str| {
            let cause = format!("namespace {} has {what}", text(namespace));
            Err(Error::new(ErrorKind::PreconditionFailed, cause))
        };
        if !self.list_namespaces(Some(namespace)).await?.is_empty() {
            return refuse("namespaces below it");
        }
        let values: [&str; 2] = [&self.name, &text(namespace)];
        let content = "SELECT 1 FROM iceberg_tables WHERE catalog_name = $1 \
                       AND table_namespace = $2 LIMIT 1";
        if !self.sessions.query(content, &values).await?.is_empty() {
            return refuse("tables or views");
        }
        let statement = "DELETE FROM iceberg_namespace_properties WHERE catalog_name = $1 \
                         AND namespace = $2";
        self.sessions.execute(statement, &values).await?;
        Ok(())
    }

    async fn list_tables(&self, namespace: &NamespaceIdent) -> Result<Vec<TableIdent>> {
        self.check_namespace(namespace).await?;
        let statement = format!(
            "SELECT table_name FROM iceberg_tables WHERE catalog_name = $1 \
             AND table_namespace = $2 AND {IS_TABLE} ORDER BY table_name"
        );
        let rows = self.sessions.query(&statement, &[&self.name, &text(namespace)]).await?;
        let named = |name| TableIdent::new(namespace.clone(), name);
        rows.iter().map(|row| row.try_get(0).map(named).map_err(unreadable)).collect()
    }

    async fn create_table(
        &self,
        namespace: &NamespaceIdent,
        mut creation: TableCreation,
    ) -> Result<Table> {
        self.check_namespace(namespace).await?;
        let identifier = TableIdent::new(namespace.clone(), creation.name.clone());
        if self.table_exists(&identifier).await? {
            return Err(already_there(&identifier));
        }
        let place = match creation.location.take() {
            Some(place) => place.trim_end_matches('/').to_owned(),
            None => self.place(namespace, &creation.name).await?,
        };
        creation.location = Some(place.clone());
        let metadata = TableMetadataBuilder::from_table_creation(creation)?.build()?.metadata;
        let location = MetadataLocation::new_with_metadata(place, &metadata);
        metadata.write_to(&self.files, &location).await?;
        let location = location.to_string();
        self.insert(&identifier, &location).await?;
        self.table(&identifier, location, metadata)
    }

    async fn load_table(&self, table: &TableIdent) -> Result<Table> {
        let location = self.location(table).await?.ok_or_else(|| not_there(table))?;
        let metadata = TableMetadata::read_from(&self.files, &location).await?;
        self.table(table, location, metadata)
    }

    async fn drop_table(&self, table: &TableIdent) -> Result<()> {
        let statement = format!(
            "DELETE FROM iceberg_tables WHERE catalog_name = $1 AND table_namespace = $2 \
             AND table_name = $3 AND {IS_TABLE}"
        );
        let values: [&str; 3] = [&self.name, &text(table.namespace()), table.name()];
        // Asked for first, so that a connection that was lost meanwhile is seen before.
        self.location(table).await?.ok_or_else(|| not_there(table))?;
        match self.sessions.execute(&statement, &values).await? {
            0 => Err(not_there(table)),
            _ => Ok(()),
        }
    }

    /// Refused, before the table is dropped: nothing in this crate deletes a file.
    async fn purge_table(&self, table: &TableIdent) -> Result<()> {
        let cause = format!(
            "files of table {table} are not deleted here: drop it, or purge it \
                             with another client"
        );
        Err(Error::new(ErrorKind::FeatureUnsupported, cause))
    }

    async fn table_exists(&self, table: &TableIdent) -> Result<bool> {
        Ok(self.location(table).await?.is_some())
    }

    async fn rename_table(&self, src: &TableIdent, dest: &TableIdent) -> Result<()> {
        self.location(src).await?.ok_or_else(|| not_there(src))?;
        if src == dest {
            return Ok(());
        }
        self.check_namespace(dest.namespace()).await?;
        let statement = format!(
            "UPDATE iceberg_tables SET table_namespace = $4, table_name = $5 \
             WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 AND {IS_TABLE}"
        );
        let (from, to) = (text(src.namespace()), text(dest.namespace()));
        let values: [&str; 5] = [&self.name, &from, src.name(), &to, dest.name()];
        match self.sessions.execute(&statement, &values).await {
            Ok(0) => Err(not_there(src)),
            Ok(_) => Ok(()),
            Err(failure) if failure.is_duplicate() => Err(already_there(dest)),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn register_table(&self, table: &TableIdent, metadata_location: String) -> Result<Table> {
        self.check_namespace(table.namespace()).await?;
        if self.table_exists(table).await? {
            return Err(already_there(table));
        }
        let metadata = TableMetadata::read_from(&self.files, &metadata_location).await?;
        self.insert(table, &metadata_location).await?;
        self.table(table, metadata_location, metadata)
    }

    async fn update_table(&self, commit: TableCommit) -> Result<Table> {
        let identifier = commit.identifier().clone();
        let current = self.load_table(&identifier).await?;
        let before = current.metadata_location_result()?.to_owned();
        let staged = commit.apply(current)?;
        let after = MetadataLocation::from_str(staged.metadata_location_result()?)?;
        staged.metadata().write_to(&self.files, &after).await?;
        let statement = format!(
            "UPDATE iceberg_tables SET metadata_location = $5, previous_metadata_location = $4 \
             WHERE catalog_name = $1 AND table_namespace = $2 AND table_name = $3 \
             AND metadata_location = $4 AND {IS_TABLE}"
        );
        let (namespace, after) = (text(identifier.namespace()), after.to_string());
        let values: [&str; 5] = [&self.name, &namespace, identifier.name(), &before, &after];
        let conflict = |cause: String| {
            Error::new(ErrorKind::CatalogCommitConflicts, cause).with_retryable(true)
        };
        match self.sessions.execute(&statement, &values).await {
            Ok(0) => Err(conflict(format!("another commit to table {identifier} was first"))),
            Ok(_) => Ok(staged),
            Err(failure) if failure.is_conflict() => Err(conflict(failure.to_string())),
            Err(failure) => Err(failure.into()),
        }
    }
}
