//! Three nodes commit at the same time into a table of a real catalogue, each with a predecessor
//! that lives on.
//!
//! `ONRUSH_LAKE_REST=http://127.0.0.1:8181 cargo test -p onrush-lake -- --ignored`, with a catalogue
//! there that keeps its tables in folders of this machine.

#![allow(clippy::unwrap_used)]

mod world;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use iceberg::Catalog;
use onrush_lake::{
    CatalogueConfig, CatalogueKind, Claim, Claimant, ExpectedMark, FencedBecause, IcebergTarget,
    LakeError, LakeValue, Mark, NodeId, Verdict,
};

const PATIENCE: Duration = Duration::from_secs(60);
const NODES: u32 = 3;
const ROUNDS: u64 = 6;
const ROWS: u64 = 50;
const START: u64 = world::START;

async fn stage(target: &IcebergTarget, node: NodeId, mark: Mark) -> Vec<onrush_lake::DataFile> {
    let mut batches = target.batches(node).unwrap();
    for lsn in mark.lsn..mark.lsn + ROWS {
        let id = LakeValue::Int64(i64::try_from(lsn).unwrap());
        batches.row(&[id, LakeValue::Null], lsn, 0).unwrap();
    }
    let mut files = target.files(node, mark.lsn, mark.lsn + ROWS).unwrap();
    files.write(batches.finish().unwrap()).await.unwrap();
    files.close().await.unwrap()
}

/// Drains as a node, and says how many commits were refused.
async fn drain(catalogue: Arc<dyn Catalog>, table: String, node: NodeId) -> usize {
    let open = async || {
        let (catalogue, columns) = (Arc::clone(&catalogue), world::columns());
        IcebergTarget::open_or_create(catalogue, &table, &columns, &["id"], PATIENCE).await.unwrap()
    };
    let before = open().await;
    let expected = ExpectedMark::start(START);
    let by = |nonce| Claimant { node, history: 1, nonce, lost: &[] };
    let Claim { mark: mark_before, confirmed } =
        before.claim(&by(1), expected, PATIENCE).await.unwrap();
    let target = open().await;
    let expected = ExpectedMark::Confirmed(confirmed);
    let Claim { mut mark, .. } = target.claim(&by(2), expected, PATIENCE).await.unwrap();
    let mut refused = 0;
    for _ in 0..ROUNDS {
        let to = mark.at(mark.lsn + ROWS);
        let files = stage(&target, node, mark).await;
        loop {
            match target.append(node, &mark, &to, &files, PATIENCE).await.unwrap() {
                Verdict::Applied(confirmed) => break assert_eq!(confirmed.lsn, to.lsn),
                Verdict::NotApplied { .. } => refused += 1,
            }
        }
        mark = to;
        let files = stage(&before, node, mark_before).await;
        let to = mark_before.at(mark_before.lsn + ROWS);
        match before.append(node, &mark_before, &to, &files, PATIENCE).await {
            Err(LakeError::Fenced { because, .. }) => {
                assert_eq!(*because, FencedBecause::OtherNonce { found: mark });
            }
            other => panic!("the predecessor goes on: {other:?}"),
        }
    }
    refused
}

#[tokio::test]
#[ignore = "needs a REST catalogue, at ONRUSH_LAKE_REST"]
async fn nodes_share_a_rest_catalogue() {
    let config = CatalogueConfig {
        kind: CatalogueKind::Rest,
        uri: Some(std::env::var("ONRUSH_LAKE_REST").unwrap()),
        warehouse: None,
        token_variable: None,
        credential_variable: None,
        allow_plain_text: false,
        properties: Default::default(),
    };
    let catalogue = config.connect("rest").await.unwrap();
    let table = format!("onrush_test.nodes_{}", uuid::Uuid::new_v4().simple());
    let nodes: Vec<_> = (1..=NODES)
        .map(|node| tokio::spawn(drain(Arc::clone(&catalogue), table.clone(), NodeId(node))))
        .collect();
    let mut refused = 0;
    for node in nodes {
        refused += node.await.unwrap();
    }
    println!("{refused} commits were refused and made again; the table is {table}");
    let ident = iceberg::TableIdent::from_strs(table.split('.')).unwrap();
    let rows = world::rows(&catalogue.load_table(&ident).await.unwrap()).await;
    assert_eq!(rows.keys().copied().collect::<BTreeSet<_>>(), (1..=NODES).collect());
    for (node, lsns) in rows {
        assert_eq!(lsns, (START..START + ROUNDS * ROWS).collect::<Vec<_>>(), "node {node}");
    }
}
