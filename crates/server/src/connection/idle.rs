//! What a connection does between messages: its answers wait until they are durable, it waits for input, and is told
//! what others say.

use std::sync::Arc;

use onrush_fault::{Fault, planted};
use pgwire::messages::response::{NoticeResponse, NotificationResponse};
use tokio::io::{AsyncRead, AsyncWrite};

use super::memory::Part;
use super::{Connection, Stop};
use crate::error::{Result, SqlError, state};
use crate::execute::ended;
use crate::notifications::Notification;

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Waits until everything that was answered is durable, then sends the answers. If it cannot
    /// become durable they are taken back, and the client is told that.
    pub(super) async fn settle(&mut self) -> std::result::Result<(), Stop> {
        if let Some(token) = self.backend.take_rest() {
            let lsn = token.lsn();
            if !token.is_durable()
                && !planted(Fault::AnswerNotAwaited)
                && let Err(error) = token.wait_async().await
            {
                return Err(SqlError::from(error).fatal().into());
            }
            if let Some(archived) = self.backend.take_archive_wait(lsn) {
                self.wait_for_archive(archived).await?;
            }
        }
        self.backend.tell_others();
        self.wire.send().await
    }

    /// Waits until what was answered would survive the loss of this machine. Whoever gives up is told that it may not.
    async fn wait_for_archive(
        &mut self,
        archived: impl Future<Output = Result<()>>,
    ) -> std::result::Result<(), Stop> {
        let patience = self.backend.patience.clone();
        match patience.during(archived).await {
            Ok(()) => Ok(()),
            Err(error) if error.state == state::QUERY_CANCELED => {
                let message = "the commit is durable here and may not be in the archive: the wait for it was canceled";
                let told = SqlError::new(state::WARNING, message).warning();
                self.wire.put(&NoticeResponse::new(told.to_response().fields));
                Ok(())
            }
            Err(error) => Err(error.fatal().into()),
        }
    }

    /// What others have told the client.
    pub(super) fn notifications(&mut self) {
        for notification in self.backend.presence.entry().inbox.take() {
            let Notification { channel, payload, sender } = notification;
            let (channel, payload) = (channel.to_string(), payload.to_string());
            self.wire.put(&NotificationResponse::new(sender, channel, payload));
        }
    }

    pub(super) async fn wait_for_input(&mut self) -> std::result::Result<(), Stop> {
        self.wire.memory.note(Part::Portals, self.portals.bytes());
        let timeout = self.backend.settings.idle_in_transaction_timeout;
        let limit = self.backend.is_in_transaction() && !timeout.is_zero();
        let mut shutdown = self.shared.shutdown.subscribe();
        let signals = Arc::clone(&self.backend.patience.signals);
        let client = Arc::clone(self.backend.presence.entry());
        let is_told = !self.backend.is_in_transaction();
        tokio::select! {
            filled = self.wire.fill() => filled,
            () = client.inbox.wait(), if is_told => {
                self.notifications();
                Ok(())
            }
            () = signals.wait_for_end() => Err(ended().into()),
            _ = shutdown.wait_for(|is_down| *is_down) => Err(going_down().into()),
            () = tokio::time::sleep(timeout), if limit => Err(SqlError::new(
                state::IDLE_IN_TRANSACTION,
                "terminating connection due to idle-in-transaction timeout",
            ).fatal().into()),
        }
    }
}

fn going_down() -> SqlError {
    SqlError::new(state::ADMIN_SHUTDOWN, "the server is shutting down").fatal()
}
